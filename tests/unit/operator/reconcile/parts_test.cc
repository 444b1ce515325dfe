// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <gtest/gtest.h>

#include "operator/owned/applier.h"
#include "operator/reconcile/case.h"
#include "operator/reconcile/specs.h"

namespace sightline::reconcile {
namespace {

using object::Value;

Value parsed(const std::string& json) { return *Value::parse(json); }

TEST(Projection, HasWhatIsOursWithTheValuesThatAreThere) {
  const Value desired = parsed(R"({"a": 1, "b": {"c": "1000m"}, "d": [{"name": "x"}]})");
  const Value live =
      parsed(R"({"a": 2, "b": {"c": "1", "other": 1}, "d": [{"name": "x", "port": 1}], "e": 1})");
  EXPECT_EQ(owned::projection_of(desired, live),
            parsed(R"({"a": 2, "b": {"c": "1"}, "d": [{"name": "x"}]})"));
}

TEST(Projection, ReportsALongerListAndAMissingValue) {
  const Value desired = parsed(R"({"d": [1], "e": 1})");
  const Value live = parsed(R"({"d": [1, 2]})");
  EXPECT_EQ(owned::projection_of(desired, live), parsed(R"({"d": [1, 2], "e": null})"));
}

TEST(Difference, IsNamedByItsPath) {
  const Value left = parsed(R"({"a": 1, "b": [{"c": 1}, {"c": 2}]})");
  EXPECT_EQ(owned::first_difference(left, left), "");
  EXPECT_EQ(owned::first_difference(left, parsed(R"({"a": 1, "b": [{"c": 1}, {"c": 3}]})")),
            "/b/1/c");
  EXPECT_EQ(owned::first_difference(left, parsed(R"({"a": 2, "b": []})")), "/a");
  EXPECT_EQ(owned::first_difference(left, parsed(R"({"a": 1, "b": []})")), "/b");
}

TEST(KeptSpecs, AreReadAsTheyWereWritten) {
  KeptSpecs specs;
  specs.accepted.emplace();
  specs.accepted->model.name = "demo";
  specs.accepted->kv.block_size = 32;
  specs.revisions["aaa"].kv.block_size = 16;
  specs.images = {.router = "r:1", .nats = "n:1", .download = "d:1"};
  specs.version = "1.0.0";
  specs.template_digest = "0123";
  const KeptSpecs again = specs_of(specs_config_map({"prod", "shop"}, Value::object(), specs));
  EXPECT_EQ(again.accepted, specs.accepted);
  EXPECT_EQ(again.revisions, specs.revisions);
  EXPECT_EQ(again.images, specs.images);
  EXPECT_EQ(again.version, "1.0.0");
  EXPECT_EQ(again.template_digest, "0123");
}

TEST(KeptSpecs, LeaveOutWhatCannotBeRead) {
  const KeptSpecs specs = specs_of(parsed(
      R"json({"data": {"accepted.json": "{", "revision-aaa.json": "{\"kv\":{\"blockSize\":\"x\"}}",
             "images.json": "[", "other": "1"}})json"));
  EXPECT_FALSE(specs.accepted);
  EXPECT_TRUE(specs.revisions.empty());
  EXPECT_TRUE(specs.version.empty());
}

TEST(OlderSpec, TakesWhatMayChangeWhileItRunsAndNothingElse) {
  crd::Spec older;
  older.kv.block_size = 16;
  older.image = "sightline:1";
  crd::Spec accepted;
  accepted.kv.block_size = 32;
  accepted.image = "sightline:2";
  accepted.router.weights.overlap_credit = "0.5";
  accepted.rollout.drain_timeout = "10m";
  accepted.rollout.paused = true;
  accepted.suspend = true;
  const crd::Spec both = with_live_fields(older, accepted);
  EXPECT_EQ(both.kv.block_size, 16);
  EXPECT_EQ(both.image, "sightline:1");
  EXPECT_EQ(both.router.weights.overlap_credit, "0.5");
  EXPECT_TRUE(both.suspend);
  EXPECT_TRUE(both.rollout.paused);
  EXPECT_EQ(both.rollout.drain_timeout, "2m") << "it stands in pods";
}

TEST(Images, AreRecordedFirstAndThenOnlyOnRequest) {
  const crd::NotedImages first{.router = "r:1", .nats = {}, .download = {}};
  const crd::NotedImages second{.router = "r:2", .nats = {}, .download = {}};
  KeptSpecs kept;
  crd::Spec asked;
  note_images(kept, asked, first, "1.0.0");
  EXPECT_EQ(kept.images, first);
  note_images(kept, asked, second, "2.0.0");
  EXPECT_EQ(kept.images, first);
  asked.version = "1.5.0";
  note_images(kept, asked, second, "2.0.0");
  EXPECT_EQ(kept.images, first);
  asked.version = "2.0.0";
  note_images(kept, asked, second, "2.0.0");
  EXPECT_EQ(kept.images, second);
  EXPECT_EQ(kept.version, "2.0.0");
}

}  // namespace
}  // namespace sightline::reconcile
