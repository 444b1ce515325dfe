// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/foreign_agents.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

using object::Value;

crd::Spec spec_with_selector() {
  crd::Spec spec = test::small_spec();
  spec.pools[0].worker_template.reset();
  spec.pools[0].selector = crd::PodSelector{
      .match_labels = {{"app", "vllm"}}, .port = 8080, .events_port = 1, .replay_port = 2};
  return spec;
}

TEST(Agents, APodThatIsSelectedIsReadAtItsAddress) {
  const auto workers = foreign_workers(
      spec_with_selector(),
      {{"a", "p1", "fd00::1"}, {"a", "p0", "10.0.0.1"}, {"a", "p2", ""}, {"b", "p3", "10.0.0.3"}});
  const std::vector<WorkerFields> want = {{{"name", "p0"},
                                           {"url", "http://10.0.0.1:8080"},
                                           {"events", "tcp://10.0.0.1:1"},
                                           {"replay", "tcp://10.0.0.1:2"}},
                                          {{"name", "p1"},
                                           {"url", "http://[fd00::1]:8080"},
                                           {"events", "tcp://[fd00::1]:1"},
                                           {"replay", "tcp://[fd00::1]:2"}}};
  EXPECT_EQ(workers, want);
}

TEST(Agents, AnEndpointIsReadWhereTheSpecSays) {
  crd::Spec spec = test::small_spec();
  spec.pools[0].worker_template.reset();
  spec.pools[0].backend = crd::Backend::Sglang;
  spec.pools[0].endpoints = {{.name = "e", .url = "http://h:1", .events = {}, .replay = {}}};
  const std::vector<WorkerFields> want = {
      {{"name", "e"}, {"url", "http://h:1"}, {"family", "sglang"}}};
  EXPECT_EQ(foreign_workers(spec, {}), want);
}

TEST(Agents, ThereIsOneWhichEndsBeforeTheNext) {
  const auto objects = agent_objects(test::render_input_of(spec_with_selector()), {});
  ASSERT_EQ(objects.size(), 2U);
  const Value& agent = objects[1];
  EXPECT_EQ(agent["kind"].text(), "Deployment");
  EXPECT_EQ(agent.at({"spec", "replicas"}).integer(), 1);
  EXPECT_EQ(agent.at({"spec", "strategy", "type"}).text(), "Recreate");
}

TEST(Agents, AnotherListReplacesNoPod) {
  const RenderInput input = test::render_input_of(spec_with_selector());
  const auto before = agent_objects(input, {});
  const auto after = agent_objects(input, {{"a", "p0", "10.0.0.1"}});
  EXPECT_FALSE(before[0] == after[0]);
  EXPECT_TRUE(before[1] == after[1]);
}

TEST(Agents, PodsThatAreMadeHereHaveTheirOwn) {
  EXPECT_TRUE(agent_objects(test::render_input_of(test::small_spec()), {}).empty());
}

}  // namespace
}  // namespace sightline::desired
