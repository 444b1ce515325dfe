// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/program_settings.h"

#include <string>

#include <gtest/gtest.h>

#include "common/contract/live_settings.h"

#include "operator/desired/pod_merge.h"
#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

using object::Value;

TEST(DesiredSettings, ARouterTakesOverAllThatIsPushed) {
  crd::Spec spec = test::small_spec();
  spec.model.max_model_len = 1;
  for (const auto& [name, value] : live_settings(test::render_input_of(spec))) {
    EXPECT_TRUE(contract::is_live(name)) << name;
  }
}

TEST(DesiredSettings, TheRevisionsEnvironmentFollowsFromWhatMakesARevision) {
  crd::Spec spec = test::small_spec();
  const Value before = revision_config_map(test::render_input_of(spec));
  EXPECT_EQ(before["immutable"].boolean(), true);
  spec.nats.external.emplace();
  spec.nats.external->urls = {"nats://elsewhere:4222"};
  spec.router.stale_after = "9s";
  spec.log_level = crd::LogLevel::Debug;
  spec.rollout.drain_timeout = "1s";
  EXPECT_TRUE(revision_config_map(test::render_input_of(spec)) == before)
      << "an immutable ConfigMap would have to change";
  spec.kv.block_size = 32;
  EXPECT_FALSE(revision_config_map(test::render_input_of(spec)) == before);
}

TEST(DesiredSettings, AFileHasNoMoreWorkersThanProgramsRead) {
  const RenderInput input = test::render_input_of(test::small_spec());
  std::vector<WorkerFields> workers(kFileWorkersMax, {{"name", "w"}, {"url", "http://a:1"}});
  EXPECT_EQ(Value::parse(router_file(input, workers))->at({"workers"}).size(), kFileWorkersMax);
  workers.push_back({{"name", "x"}, {"url", "http://a:2"}});
  EXPECT_TRUE(Value::parse(router_file(input, workers))->at({"workers"}).is_null());
  EXPECT_EQ(Value::parse(workers_file(workers))->at({"workers"}).size(), kFileWorkersMax);
}

TEST(DesiredSettings, NoPodTemplateSetsWhatIsRendered) {
  const RenderInput input = test::render_input_of(test::small_spec());
  auto variables = revision_environment(input);
  variables.merge(nats_environment(input));
  for (const auto& [name, value] : variables) {
    const auto users = Value::parse(R"({"spec":{"containers":[{"name":"router","env":[{"name":")" +
                                    name + R"("}]}]}})");
    EXPECT_EQ(fights(*users, kRouterComponent).size(), 1U) << name;
  }
}

}  // namespace
}  // namespace sightline::desired
