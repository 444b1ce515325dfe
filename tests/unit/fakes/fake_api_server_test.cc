// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/fakes/fake_api_server.h"

#include <gtest/gtest.h>

#include "operator/kube/object/metadata.h"

namespace sightline::fakes {
namespace {

using client::Reason;
using client::WatchEvent;
using object::Value;

const object::Resource kApps{"apps", "v1", "deployments", "Deployment"};

Value app(const std::string& members) {
  return *Value::parse(R"({"metadata":{"namespace":"s","name":"a"})" +
                       (members.empty() ? "" : "," + members) + "}");
}

TEST(FakeApiServer, CountsVersionsAndGenerationsOfRealChangesOnly) {
  FakeApiServer server;
  auto made = server.apply(kApps, app(R"("spec":{"n":1})"), {.manager = "m"});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->at({"metadata", "generation"}).integer(), 1);
  const std::uint64_t version = server.version();
  EXPECT_TRUE(server.apply(kApps, app(R"("spec":{"n":1})"), {.manager = "m"}).ok());
  EXPECT_EQ(server.version(), version);
  made = server.apply(kApps, app(R"("status":{"x":1})"), {.manager = "s", .subresource = "status"});
  EXPECT_EQ(made->at({"status", "x"}).integer(), 1);
  EXPECT_EQ(made->at({"metadata", "generation"}).integer(), 1);
  made = server.apply(kApps, app(R"("spec":{"n":2},"status":{"x":7})"), {.manager = "m"});
  EXPECT_EQ(made->at({"status", "x"}).integer(), 1);
  EXPECT_EQ(made->at({"metadata", "generation"}).integer(), 2);
}

TEST(FakeApiServer, WhatAManagerLeavesOutGoesUnlessOthersOwnIt) {
  FakeApiServer server;
  static_cast<void>(server.apply(kApps, app(R"("spec":{"a":1,"b":{"c":2}})"), {.manager = "m"}));
  static_cast<void>(server.apply(kApps, app(R"("spec":{"a":1})"), {.manager = "other"}));
  const auto made = server.apply(kApps, app(R"("spec":{"d":3})"), {.manager = "m"});
  EXPECT_EQ((*made)["spec"].to_text(), R"({"a":1,"d":3})");
}

TEST(FakeApiServer, AnotherManagersFieldIsAConflictUnlessItIsForced) {
  FakeApiServer server;
  static_cast<void>(server.apply(kApps, app(R"("spec":{"a":1})"), {.manager = "m"}));
  const auto refused =
      server.apply(kApps, app(R"("spec":{"a":2})"), {.manager = "o", .is_forced = false});
  ASSERT_TRUE(failed(refused, Reason::Conflict));
  EXPECT_TRUE(client::has_cause(refused.error(), client::kFieldManagerConflict));
  EXPECT_EQ(refused.error().causes.at(0).field, ".spec.a");
  EXPECT_TRUE(server.apply(kApps, app(R"("spec":{"a":2})"), {.manager = "o"}).ok());
  // The other manager owns the field, so leaving it out does not remove it.
  const auto made = server.apply(kApps, app(""), {.manager = "m"});
  EXPECT_EQ((*made)["spec"].to_text(), R"({"a":2})");
}

TEST(FakeApiServer, ElementsWithNamesAreMergedByThem) {
  FakeApiServer server;
  static_cast<void>(server.apply(
      kApps, app(R"("spec":{"c":[{"name":"x","i":1},{"name":"y","i":2}]})"), {.manager = "m"}));
  static_cast<void>(
      server.apply(kApps, app(R"("spec":{"c":[{"name":"x","j":5}]})"), {.manager = "o"}));
  const auto made =
      server.apply(kApps, app(R"("spec":{"c":[{"name":"x","i":3}]})"), {.manager = "m"});
  EXPECT_EQ(made->at({"spec", "c"}).to_text(), R"([{"i":3,"j":5,"name":"x"}])");
}

TEST(FakeApiServer, StaleWritesAndDeletesAreConflicts) {
  FakeApiServer server;
  const auto first = server.create(kApps, app(R"("spec":{"a":1})"));
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(failed(server.create(kApps, app("")), Reason::AlreadyExists));
  Value changed = *first;
  changed.set({"spec", "a"}, 2);
  EXPECT_TRUE(server.update(kApps, changed).ok());
  changed.set({"spec", "a"}, 3);
  EXPECT_TRUE(failed(server.update(kApps, changed), Reason::Conflict));
  EXPECT_TRUE(failed(server.remove(kApps, {"s", "a"}, {.uid = "other"}), Reason::Conflict));
  const std::string uid(object::uid_of(*first));
  EXPECT_TRUE(server.remove(kApps, {"s", "a"}, {.uid = uid}).ok());
  EXPECT_TRUE(failed(server.remove(kApps, {"s", "a"}, {.uid = uid}), Reason::NotFound));
}

TEST(FakeApiServer, FinalizersKeepAnObjectUntilTheLastIsGone) {
  FakeApiServer server;
  Value object = app("");
  object.set({"metadata", "finalizers"}, Value::array({"f"}));
  ASSERT_TRUE(server.create(kApps, object).ok());
  ASSERT_TRUE(server.remove(kApps, {"s", "a"}, {}).ok());
  EXPECT_TRUE(object::is_being_deleted(*server.find(kApps, {"s", "a"})));
  Value patch;
  patch.set({"metadata", "finalizers"}, {});
  EXPECT_TRUE(server.merge_patch(kApps, {"s", "a"}, patch, "").ok());
  EXPECT_FALSE(server.find(kApps, {"s", "a"}));
}

TEST(FakeApiServer, WatchesBeginAtAnyKnownVersion) {
  FakeApiServer server;
  ASSERT_TRUE(server.create(kApps, app("")).ok());
  const std::string version = std::to_string(server.version());
  ASSERT_TRUE(server.remove(kApps, {"s", "a"}, {}).ok());
  auto watch = server.watch(kApps, {.of = {}, .resource_version = version});
  EXPECT_EQ((*watch)->next({})->type, "DELETED");
  server.send_bookmarks();
  EXPECT_EQ((*watch)->next({})->type, "BOOKMARK");
  EXPECT_EQ((*watch)->next({})->what, WatchEvent::EventKind::Silent);
  server.compact();
  watch = server.watch(kApps, {.of = {}, .resource_version = version});
  const auto event = (*watch)->next({});
  EXPECT_EQ(event->type, "ERROR");
  EXPECT_EQ(event->object["code"].integer(), 410);
}

TEST(FakeApiServer, AnObjectThatLeavesASelectionIsDeletedForItsWatch) {
  FakeApiServer server;
  auto watch = server.watch(kApps, {.of = {.name_space = {}, .labels = "l=1", .fields = {}},
                                    .resource_version = std::to_string(server.version())});
  Value object = app("");
  object.set({"metadata", "labels", "l"}, "1");
  server.put(kApps, object);
  EXPECT_EQ((*watch)->next({})->type, "ADDED");
  object.set({"metadata", "labels", "l"}, "2");
  server.put(kApps, object);
  EXPECT_EQ((*watch)->next({})->type, "DELETED");
}

TEST(FakeApiServer, DistinguishesLostAnswersFromRefusals) {
  FakeApiServer server;
  server.after = [](const Call&) { return api_failure(Reason::Deadline, "lost"); };
  EXPECT_TRUE(failed(server.create(kApps, app("")), Reason::Deadline));
  EXPECT_TRUE(server.find(kApps, {"s", "a"}));
  server.may_write = [] { return false; };
  EXPECT_TRUE(failed(server.remove(kApps, {"s", "a"}, {}), Reason::NotLeading));
  EXPECT_EQ(server.writes().size(), 1U);
}

TEST(FakeApiServer, GarbageGoesWithItsOwners) {
  FakeApiServer server;
  const auto owner = server.create(kApps, app(""));
  Value child = app("");
  child.set({"metadata", "name"}, "child");
  child.set({"metadata", "ownerReferences"}, Value::array({object::controller_reference(*owner)}));
  ASSERT_TRUE(server.create(kApps, child).ok());
  EXPECT_EQ(server.collect_garbage(), 0U);
  ASSERT_TRUE(server.remove(kApps, {"s", "a"}, {}).ok());
  EXPECT_EQ(server.collect_garbage(), 1U);
  EXPECT_TRUE(server.objects(kApps).empty());
}

}  // namespace
}  // namespace sightline::fakes
