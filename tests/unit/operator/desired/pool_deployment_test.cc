// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/pool_deployment.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

using object::Value;
using test::container_of;

Value workload(const crd::Spec& spec, std::int64_t replicas = 2) {
  const RenderInput input = test::render_input_of(spec);
  return pool_deployment(input, input.spec.pools[0], replicas);
}

std::vector<std::string> mounts(const Value& container) {
  std::vector<std::string> names;
  for (const Value& mount : container["volumeMounts"].items()) {
    names.emplace_back(mount["name"].text());
  }
  return names;
}

std::string drain_command(const Value& workload) {
  return test::joined(
      container_of(workload, "worker").at({"lifecycle", "preStop", "exec", "command"}));
}

std::string variable(const Value& container, std::string_view name) {
  return std::string(test::named(container["env"], name)["value"].text());
}

TEST(Workers, TheAgentRunsBesideTheEngineAndOutlivesIt) {
  const Value made = workload(test::small_spec());
  const Value agent = test::named(test::pod_of(made)["initContainers"], "agent");
  EXPECT_EQ(agent["restartPolicy"].text(), "Always");
  EXPECT_NE(drain_command(made).find("http://127.0.0.1:9090/drain?timeout=120"), std::string::npos);
  EXPECT_EQ(test::pod_of(made)["terminationGracePeriodSeconds"].integer(), 135);
}

TEST(Workers, AgentAndEngineSeeADeletionDuringTheirStart) {
  const Value agent = container_of(workload(test::small_spec()), "agent");
  EXPECT_EQ(agent.at({"lifecycle", "preStop", "sleep", "seconds"}).integer(), 1);
  EXPECT_EQ(agent.at({"startupProbe", "httpGet", "path"}).text(), "/healthz");
}

TEST(Workers, DrainFitsTheLimitOfAgents) {
  crd::Spec spec = test::small_spec();
  spec.rollout.drain_timeout = "90m";
  EXPECT_NE(drain_command(workload(spec)).find("/drain?timeout=3600"), std::string::npos);
}

TEST(Workers, TheHookOfASimulatorIsTheDrainCommand) {
  crd::Spec spec = test::small_spec();
  spec.pools[0].backend = crd::Backend::Simulator;
  EXPECT_EQ(drain_command(workload(spec)),
            "sightline drain --token-file /etc/sightline/drain/token --timeout 120s");
}

TEST(Workers, EngineHasOnlyTheDrainTokenOfTheAgent) {
  const Value made = workload(test::small_spec());
  EXPECT_EQ(mounts(container_of(made, "agent")),
            (std::vector<std::string>{"identity", "nats", "model", "drain"}));
  EXPECT_EQ(mounts(container_of(made, "worker")),
            (std::vector<std::string>{"drain", "model", "scratch", "shared-memory"}));
  EXPECT_TRUE(container_of(made, "worker")["envFrom"].is_null());
}

TEST(Workers, APodIsReadyOnceRoutersHaveAdmittedIt) {
  const Value gates = test::pod_of(workload(test::small_spec()))["readinessGates"];
  EXPECT_EQ(gates.items().at(0)["conditionType"].text(), "sightline.dev/routable");
}

std::string argument_after(const Value& args, std::string_view flag) {
  const std::vector<std::string> texts = test::texts(args);
  const auto found = std::find(texts.begin(), texts.end(), flag);
  return found == texts.end() || found + 1 == texts.end() ? "" : *(found + 1);
}

// The address on which the engine listens, and the worker of its agent.
std::pair<std::string, std::string> addresses(RenderInput input, crd::Backend backend,
                                              bool is_ipv6) {
  input.is_ipv6 = is_ipv6;
  input.spec.pools[0].backend = backend;
  const Value made = pool_deployment(input, input.spec.pools[0], 1);
  return {argument_after(container_of(made, "worker")["args"], "--host"),
          argument_after(container_of(made, "agent")["args"], "--worker")};
}

TEST(Workers, EngineListensOnTheAddressesOfItsCluster) {
  const RenderInput input = test::render_input_of(test::small_spec());
  const std::string own = "name=$(SIGHTLINE_REPLICA_NAME),url=http://";
  using Addresses = std::pair<std::string, std::string>;
  EXPECT_EQ(addresses(input, crd::Backend::Vllm, false),
            Addresses("0.0.0.0", own + "127.0.0.1:8000"));
  EXPECT_EQ(addresses(input, crd::Backend::Vllm, true), Addresses("::", own + "127.0.0.1:8000"));
}

TEST(Workers, AgentReadsSglangOverIpv6AndEventsOverIpv4) {
  const RenderInput input = test::render_input_of(test::small_spec());
  EXPECT_EQ(addresses(input, crd::Backend::Sglang, false).second,
            "name=$(SIGHTLINE_REPLICA_NAME),url=http://127.0.0.1:8000,family=sglang");
  EXPECT_EQ(addresses(input, crd::Backend::Sglang, true).second,
            "name=$(SIGHTLINE_REPLICA_NAME),url=http://[::1]:8000,family=sglang,"
            "events=tcp://127.0.0.1:5557,replay=tcp://127.0.0.1:5657");
}

TEST(Workers, AUsersVariableStandsInPlaceOfOurs) {
  crd::Spec spec = test::small_spec();
  spec.pools[0].worker_template->env = {
      {.name = "HOME", .value = "/cache/me", .value_from = {}},
      {.name = "KEY", .value = {}, .value_from = {R"({"secretKeyRef":{"name":"s","key":"k"}})"}}};
  const Value worker = container_of(workload(spec), "worker");
  EXPECT_EQ(variable(worker, "HOME"), "/cache/me");
  EXPECT_EQ(test::named(worker["env"], "KEY").at({"valueFrom", "secretKeyRef", "key"}).text(), "k");
  std::size_t homes = 0;
  for (const Value& one : worker["env"].items()) {
    if (one["name"].text() == "HOME") ++homes;
  }
  EXPECT_EQ(homes, 1U) << "server-side apply refuses a name that is there twice";
}

TEST(Workers, GpusFollowFromTheRanksUnlessTheyAreGiven) {
  const auto gpus = [](const crd::Spec& spec) {
    return std::string(container_of(workload(spec), "worker")
                           .at({"resources", "limits", "nvidia.com/gpu"})
                           .text());
  };
  crd::Spec spec = test::small_spec();
  EXPECT_EQ(gpus(spec), "1");
  spec.pools[0].worker_template->parallelism = {.tensor = 2, .pipeline = 3, .data = 2};
  EXPECT_EQ(gpus(spec), "12");
  spec.pools[0].worker_template->gpus = 4;
  EXPECT_EQ(gpus(spec), "4");
  spec.pools[0].worker_template->gpus = 0;
  EXPECT_EQ(gpus(spec), "");
  spec.pools[0].worker_template->gpus.reset();
  spec.pools[0].backend = crd::Backend::Simulator;
  EXPECT_EQ(gpus(spec), "");
}

TEST(Workers, EngineHasTheStartTimeOfTheSpec) {
  crd::Spec spec = test::small_spec();
  spec.pools[0].worker_template->startup_timeout = "1h";
  const Value probe = container_of(workload(spec), "worker")["startupProbe"];
  EXPECT_EQ(*probe["failureThreshold"].integer() * *probe["periodSeconds"].integer(), 3600);
}

TEST(Workers, ChatTemplateIsAtThePathOfTheEnginesFlag) {
  crd::Spec spec = test::small_spec();
  spec.model.chat_template = crd::ConfigMapRef{.config_map = "templates", .key = "x.jinja"};
  const Value made = workload(spec);
  const Value worker = container_of(made, "worker");
  EXPECT_NE(test::joined(worker["args"])
                .find("--chat-template /etc/sightline/template/chat_template.jinja"),
            std::string::npos);
  const Value volume = test::named(test::pod_of(made)["volumes"], "template");
  EXPECT_EQ(volume.at({"configMap", "name"}).text(),
            "shop-" + test::render_input_of(spec).revision + "-template");
  const auto objects = test::all_objects(test::render_input_of(spec));
  const Value map = test::find(objects, "ConfigMap", volume.at({"configMap", "name"}).text());
  EXPECT_EQ(map.at({"data", "chat_template.jinja"}).text(), "{{ messages }}");
  EXPECT_EQ(map["immutable"].boolean(), true);
}

TEST(Workers, RecreateEndsAllBeforeItBegins) {
  crd::Spec spec = test::small_spec();
  spec.rollout.strategy = crd::Strategy::Recreate;
  const Value strategy = workload(spec).at({"spec", "strategy"});
  EXPECT_EQ(strategy.to_text(), R"({"type":"Recreate"})");
}

TEST(Workers, ASimulatorIsOurOwnImage) {
  crd::Spec spec = test::small_spec();
  spec.pools[0].backend = crd::Backend::Simulator;
  spec.pools[0].worker_template->image.clear();
  EXPECT_EQ(container_of(workload(spec), "worker")["image"].text(), "sightline:1");
}

TEST(Workers, EveryContainerKeepsTheRestrictedStandard) {
  crd::Spec spec = test::small_spec();
  spec.model.source = crd::ModelSource{.uri = "hf://a/b", .pvc = {}, .image = {}};
  const Value pod = test::pod_of(workload(spec));
  EXPECT_EQ(pod.at({"securityContext", "runAsNonRoot"}).boolean(), true);
  EXPECT_EQ(pod.at({"securityContext", "seccompProfile", "type"}).text(), "RuntimeDefault");
  EXPECT_EQ(pod["automountServiceAccountToken"].boolean(), false);
  EXPECT_EQ(pod["enableServiceLinks"].boolean(), false);
  for (const char* name : {"download", "agent", "worker"}) {
    const Value security = container_of(workload(spec), name)["securityContext"];
    EXPECT_EQ(security["allowPrivilegeEscalation"].boolean(), false) << name;
    EXPECT_EQ(test::joined(security.at({"capabilities", "drop"})), "ALL") << name;
  }
}

}  // namespace
}  // namespace sightline::desired
