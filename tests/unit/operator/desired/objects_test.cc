// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/objects.h"

#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

using object::Value;

crd::Spec rich_spec() {
  crd::Spec spec = test::small_spec();
  spec.monitoring.pod_monitor = crd::PodMonitor::Enabled;
  spec.frontend.autoscaling = crd::FrontendAutoscaling{.min_replicas = 2, .max_replicas = 5};
  spec.nats.managed = crd::ManagedNats{.replicas = 3, .image = {}, .resources = {}};
  crd::Pool scaled = spec.pools[0];
  scaled.name = "b";
  scaled.autoscaling = crd::PoolAutoscaling{.min_replicas = 1, .max_replicas = 2};
  crd::Pool outside;
  outside.name = "c";
  outside.endpoints = {{.name = "e", .url = "http://h:1", .events = {}, .replay = {}}};
  spec.pools.push_back(scaled);
  spec.pools.push_back(outside);
  return spec;
}

TEST(Objects, EachSaysWhatItIsAndWhomItBelongsTo) {
  for (const Value& object : test::all_objects(test::render_input_of(rich_spec()))) {
    const std::string name(object.at({"metadata", "name"}).text());
    EXPECT_FALSE(object["kind"].text().empty()) << name;
    EXPECT_FALSE(object["apiVersion"].text().empty()) << name;
    EXPECT_EQ(object.at({"metadata", "namespace"}).text(), "prod") << name;
    EXPECT_EQ(object.at({"metadata", "labels", kRouterLabel}).text(), "shop") << name;
    EXPECT_EQ(object.at({"metadata", "labels", kManagerLabel}).text(), kManager) << name;
    ASSERT_EQ(object.at({"metadata", "ownerReferences"}).size(), 1U) << name;
    EXPECT_TRUE(object["status"].is_null()) << name;
  }
}

TEST(Objects, NoTwoHaveOneName) {
  std::set<std::pair<std::string, std::string>> names;
  for (const Value& object : test::all_objects(test::render_input_of(rich_spec()))) {
    const std::string kind(object["kind"].text());
    const std::string name(object.at({"metadata", "name"}).text());
    EXPECT_TRUE(names.emplace(kind, name).second) << kind << " " << name;
  }
}

TEST(Objects, TwoRevisionsShareNothingButWhatIsShared) {
  crd::Spec spec = rich_spec();
  std::set<std::pair<std::string, std::string>> names;
  for (const std::int64_t block_size : {16, 32}) {
    spec.kv.block_size = block_size;
    for (const Value& object :
         revision_objects(test::render_input_of(spec), test::sizes_of(spec), {}, {})) {
      const std::string name(object.at({"metadata", "name"}).text());
      EXPECT_TRUE(names.emplace(object["kind"].text(), name).second) << name;
    }
  }
  const Value before = Value(shared_objects(test::render_input_of(spec), test::kSurroundings));
  spec.kv.block_size = 64;
  EXPECT_TRUE(Value(shared_objects(test::render_input_of(spec), test::kSurroundings)) == before);
}

TEST(Objects, NamesFitWhereTheyAreUsed) {
  crd::Spec spec = rich_spec();
  spec.pools[0].name = std::string(15, 'p');
  for (const Value& object :
       test::all_objects(test::render_input_of(spec, "n" + std::string(39, 'm')))) {
    const std::string name(object.at({"metadata", "name"}).text());
    EXPECT_LE(name.size(), object["kind"].text() == "Service" ? 63U : 253U) << name;
    for (const auto& [label, value] : object.at({"metadata", "labels"}).members()) {
      EXPECT_LE(value.text().size(), 63U) << label;
    }
  }
}

TEST(Objects, EqualValuesHaveEqualTexts) {
  const RenderInput input = test::render_input_of(rich_spec());
  EXPECT_EQ(Value(test::all_objects(input)).to_text(), Value(test::all_objects(input)).to_text());
}

TEST(Objects, WhatIsSuspendedHasNoPods) {
  crd::Spec spec = rich_spec();
  spec.suspend = true;
  const auto objects = test::all_objects(test::render_input_of(spec));
  for (const Value& object : objects) {
    if (object.at({"spec", "template"}).is_null()) continue;
    EXPECT_EQ(object.at({"spec", "replicas"}).integer(), 0)
        << object.at({"metadata", "name"}).text();
  }
  EXPECT_TRUE(test::of_kind(objects, "HorizontalPodAutoscaler").empty());
  EXPECT_TRUE(test::of_kind(objects, "PodDisruptionBudget").empty());
}

TEST(Objects, WhatOthersReferToComesBeforeThem) {
  const auto objects = test::all_objects(test::render_input_of(rich_spec()));
  std::set<std::string> config_maps;
  std::set<std::string> accounts;
  for (const Value& object : objects) {
    const std::string name(object.at({"metadata", "name"}).text());
    if (object["kind"].text() == "ConfigMap") config_maps.insert(name);
    if (object["kind"].text() == "ServiceAccount") accounts.insert(name);
    const Value pod = test::pod_of(object);
    if (pod.is_null()) continue;
    EXPECT_TRUE(accounts.contains(std::string(pod["serviceAccountName"].text()))) << name;
    for (const Value& volume : pod["volumes"].items()) {
      const std::string map(volume.at({"configMap", "name"}).text());
      EXPECT_TRUE(map.empty() || config_maps.contains(map)) << name << " " << map;
    }
  }
}

TEST(Objects, PodsAreSelectedByWhatTheyAreLabelledWith) {
  for (const Value& object : test::all_objects(test::render_input_of(rich_spec()))) {
    for (const auto& [label, value] : object.at({"spec", "selector", "matchLabels"}).members()) {
      if (object.at({"spec", "template"}).is_null()) continue;
      EXPECT_TRUE(object.at({"spec", "template", "metadata", "labels", label}) == value) << label;
    }
  }
}

TEST(Objects, DurationsAreWholeSecondsRoundedUp) {
  EXPECT_EQ(seconds_of("90s"), 90);
  EXPECT_EQ(seconds_of("2m"), 120);
  EXPECT_EQ(seconds_of("1h"), 3600);
  EXPECT_EQ(seconds_of("1500ms"), 2);
  EXPECT_EQ(seconds_of("0s"), 0);
}

}  // namespace
}  // namespace sightline::desired
