// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/pod_merge.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::desired {
namespace {

using object::Value;

Value json(const std::string& text) {
  auto value = Value::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

std::string merged(const std::string& ours, const std::string& users) {
  Value value = json(ours);
  merge_pod_template(value, json(users));
  return value.to_text();
}

TEST(PodMerge, ObjectsAreMergedAndOtherValuesReplaced) {
  EXPECT_EQ(merged(R"({"spec":{"a":{"x":1,"y":2},"b":[1,2]}})",
                   R"({"spec":{"a":{"y":3,"z":4},"b":[5]}})"),
            R"({"spec":{"a":{"x":1,"y":3,"z":4},"b":[5]}})");
}

TEST(PodMerge, ContainersAreMergedByNameAndNewOnesStandBehind) {
  EXPECT_EQ(merged(R"({"containers":[{"name":"a","image":"i"}]})",
                   R"({"containers":[{"name":"b","image":"j"},{"name":"a","stdin":true}]})"),
            R"({"containers":[{"image":"i","name":"a","stdin":true},{"image":"j","name":"b"}]})");
}

TEST(PodMerge, NullRemovesAlsoWhatIsNotThere) {
  EXPECT_EQ(
      merged(R"({"a":1,"b":{"c":1}})", R"({"a":null,"b":{"c":null,"d":null},"e":{"f":null}})"),
      R"({"b":{},"e":{}})");
  EXPECT_EQ(merged(R"({"volumes":[{"name":"v","emptyDir":{}}]})",
                   R"({"volumes":[{"name":"v","emptyDir":null,"ephemeral":{"a":1}}]})"),
            R"({"volumes":[{"ephemeral":{"a":1},"name":"v"}]})");
}

TEST(PodMerge, ElementsWithoutANameAreAppended) {
  EXPECT_EQ(merged(R"({"env":[{"value":"1"}]})", R"({"env":[{"value":"2"}]})"),
            R"({"env":[{"value":"1"},{"value":"2"}]})");
}

TEST(PodMerge, TheSameTemplateTwiceIsTheSameAsOnce) {
  const std::string users =
      R"({"spec":{"containers":[{"name":"b","ports":[{"containerPort":1,"name":"p"}]}],
          "tolerations":[{"key":"k"}]}})";
  Value once = json(R"({"spec":{"containers":[{"name":"a"}]}})");
  merge_pod_template(once, json(users));
  Value twice = once;
  merge_pod_template(twice, json(users));
  EXPECT_EQ(once.to_text(), twice.to_text());
}

TEST(PodMerge, RefusesFieldsThatDefineOurPrograms) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {R"({"kind":"Pod"})", "kind"},
      {R"({"spec":null})", "spec"},
      {R"({"metadata":{"name":"x"}})", "metadata.name"},
      {R"({"metadata":{"labels":{"sightline.dev/pool":"x"}}})",
       "metadata.labels.sightline.dev/pool"},
      {R"({"metadata":{"annotations":{"sightline.dev/restart":"x"}}})",
       "metadata.annotations.sightline.dev/restart"},
      {R"({"spec":{"terminationGracePeriodSeconds":1}})", "spec.terminationGracePeriodSeconds"},
      {R"({"spec":{"readinessGates":[]}})", "spec.readinessGates"},
      {R"({"spec":{"containers":null}})", "spec.containers"},
      {R"({"spec":{"volumes":{}}})", "spec.volumes"},
      {R"({"spec":{"volumes":[{"name":"identity"}]}})", "spec.volumes[0]"},
      {R"({"spec":{"containers":[{"name":"x"},{"name":"worker","args":[]}]}})",
       "spec.containers[1].args"},
      {R"({"spec":{"containers":[{"name":"worker","volumeMounts":null}]}})",
       "spec.containers[0].volumeMounts"},
      {R"({"spec":{"containers":[{"name":"worker","env":[{"name":"PYTHONHASHSEED"}]}]}})",
       "spec.containers[0].env[0].name"},
      {R"({"spec":{"initContainers":[{"name":"agent","image":"i"}]}})",
       "spec.initContainers[0].image"},
  };
  for (const auto& [users, field] : refused) {
    EXPECT_EQ(fights(json(users), "worker"), std::vector<std::string>{field}) << users;
  }
}

TEST(PodMerge, WhatIsTheUsersOwnPasses) {
  EXPECT_TRUE(fights(json(R"({"metadata":{"labels":{"team":"a"}},"spec":{"hostNetwork":true,
    "volumes":[{"name":"scratch","emptyDir":{"sizeLimit":"1Gi"}},{"name":"own"}],
    "containers":[{"name":"worker","resources":{},"env":[{"name":"A"}]},
                  {"name":"own","command":["x"],"lifecycle":{}}]}})"),
                     "worker")
                  .empty());
  EXPECT_TRUE(
      fights(json(R"({"spec":{"initContainers":[{"name":"agent","image":"i"}]}})"), "frontend")
          .empty())
      << "a frontend has no agent beside it";
}

}  // namespace
}  // namespace sightline::desired
