// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/foreign_agents.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "operator/agreement/agreement.h"
#include "operator/desired/model_files.h"
#include "operator/desired/pods.h"
#include "operator/desired/programs.h"

namespace sightline::desired {

using object::Value;

namespace {

constexpr std::string_view kWorkersFile = "agents.yaml";
// Time for its last frames, and to announce its end to routers.
constexpr std::int64_t kGraceSeconds = 15;

bool is_foreign(const crd::Pool& pool) { return pool.selector || !pool.endpoints.empty(); }

std::string place_of(std::string_view scheme, const std::string& ip, std::int64_t port) {
  const bool is_v6 = ip.find(':') != std::string::npos;
  return std::string(scheme) + "://" + (is_v6 ? "[" + ip + "]" : ip) + ":" + std::to_string(port);
}

WorkerFields of_pod(const crd::Pool& pool, const ForeignPod& pod) {
  const crd::PodSelector& selector = *pool.selector;
  WorkerFields fields = {{"name", pod.name}, {"url", place_of("http", pod.ip, selector.port)}};
  if (selector.events_port) fields["events"] = place_of("tcp", pod.ip, *selector.events_port);
  if (selector.replay_port) fields["replay"] = place_of("tcp", pod.ip, *selector.replay_port);
  return fields;
}

WorkerFields of_endpoint(const crd::Endpoint& endpoint) {
  WorkerFields fields = {{"name", endpoint.name}, {"url", endpoint.url}};
  if (!endpoint.events.empty()) fields["events"] = endpoint.events;
  if (!endpoint.replay.empty()) fields["replay"] = endpoint.replay;
  return fields;
}

Value config_map(const RenderInput& input, const std::vector<ForeignPod>& pods) {
  Value map = object_of(input, {.api_version = "v1",
                                .kind = "ConfigMap",
                                .name = revision_name(input.owner, input.revision, kAgents),
                                .labels = labels(input.owner, kAgent, input.revision)});
  map.set({"data", kWorkersFile}, workers_file(foreign_workers(input.spec, pods)));
  return map;
}

Value agent_deployment(const RenderInput& input) {
  const std::string name = revision_name(input.owner, input.revision, kAgents);
  Value agent = agent_program(
      input, {"--config", std::string(kConfigPath) + "/" + std::string(kWorkersFile)});
  agent.member("readinessProbe") = probe_of({.path = "/readyz", .port = "admin"});
  PodSpec pod(input, kAgent);
  add_download(pod, input, ModelFiles::Small);
  mount_belonging(pod, input, kAgent);
  pod.mount_config_map("config", name, kConfigPath);
  pod.add_container(std::move(agent));
  pod.set("terminationGracePeriodSeconds", kGraceSeconds);
  Value object = deployment(input, {.name = name,
                                    .component = kAgent,
                                    .pool = {},
                                    .pod = pod.take(),
                                    .replicas = input.spec.suspend ? 0 : 1});
  object.set({"spec", "strategy", "type"}, "Recreate");
  merge_users(object, input.spec.agents.pod_template);
  return object;
}

}  // namespace

bool has_foreign_workers(const crd::Spec& spec) {
  return std::any_of(spec.pools.begin(), spec.pools.end(), is_foreign);
}

std::vector<WorkerFields> foreign_workers(const crd::Spec& spec,
                                          const std::vector<ForeignPod>& pods) {
  std::vector<WorkerFields> workers;
  const auto add = [&](const crd::Pool& pool, WorkerFields fields) {
    if (pool.backend == crd::Backend::Sglang) fields["family"] = "sglang";
    workers.push_back(std::move(fields));
  };
  for (const crd::Pool& pool : spec.pools) {
    for (const crd::Endpoint& endpoint : pool.endpoints) add(pool, of_endpoint(endpoint));
    if (!pool.selector) continue;
    for (const ForeignPod& pod : pods) {
      // A pod without an address cannot be reached yet.
      if (pod.pool == pool.name && !pod.ip.empty()) add(pool, of_pod(pool, pod));
    }
  }
  return by_name_once(std::move(workers));
}

std::string digest_of_list(const crd::Spec& spec, const std::vector<ForeignPod>& pods) {
  return agreement::digest_of(workers_file(foreign_workers(spec, pods)));
}

std::vector<Value> agent_objects(const RenderInput& input, const std::vector<ForeignPod>& pods) {
  if (!has_foreign_workers(input.spec)) return {};
  return {config_map(input, pods), agent_deployment(input)};
}

}  // namespace sightline::desired
