// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/pool_workers.h"

#include <algorithm>
#include <utility>

#include "operator/commands/container_commands.h"
#include "operator/desired/object_names.h"

namespace sightline::judge {
namespace {

using desired::WorkerFields;

WorkerFields fields_of(const crd::Spec& spec, const crd::Pool& pool, std::string name,
                       std::string url) {
  WorkerFields fields = {{"name", std::move(name)},
                         {"url", std::move(url)},
                         {"agent", "true"},
                         {"block_size", std::to_string(spec.kv.block_size)}};
  if (pool.backend == crd::Backend::Sglang) fields["family"] = "sglang";
  return fields;
}

bool is_found_by(const Pod& pod, const std::string& pool) {
  return pod.pool == pool ||
         std::find(pod.also_in.begin(), pod.also_in.end(), pool) != pod.also_in.end();
}

bool is_worker_of(const Pod& pod, const Stack& stack, const crd::Pool& pool) {
  if (!is_found_by(pod, pool.name) || pod.is_over) return false;
  // A selected pod has no component: pods of MultimodalRouters never count as selected.
  if (pool.selector) return pod.component.empty();
  return pod.component == desired::kWorker && pod.revision == stack.revision;
}

std::int64_t port_of(const crd::Pool& pool) {
  return pool.selector ? pool.selector->port : commands::kEnginePort;
}

bool is_admitted(const crd::Spec& spec, const crd::Pool& pool, const WorkerReport& report) {
  if (report.is_ready) return true;
  // The blocks of these engines are never known, so they serve without overlap.
  const bool is_told = spec.kv.events == crd::EventsMode::Exact &&
                       pool.backend != crd::Backend::Trtllm && pool.role != crd::Role::Encode;
  return !is_told && report.state == "unverified";
}

plan::PoolCount count_of(const ClusterState& cluster, const Stack& stack, const crd::Pool& pool) {
  plan::PoolCount count;
  for (const Deployment& deployment : cluster.deployments) {
    const bool is_its = deployment.component == desired::kWorker &&
                        deployment.revision == stack.revision && deployment.pool == pool.name;
    if (is_its) count.wanted = deployment.wanted;
  }
  for (const Pod& pod : cluster.pods) {
    if (!is_worker_of(pod, stack, pool)) continue;
    ++count.pods;
    if (is_routable(cluster, stack, pod.name)) ++count.routable;
  }
  return count;
}

}  // namespace

const crd::Pool* pool_of_worker(const ClusterState& cluster, const Stack& stack,
                                const std::string& worker) {
  if (const Pod* pod = pod_named(cluster, worker)) {
    const auto its =
        std::find_if(stack.spec.pools.begin(), stack.spec.pools.end(),
                     [&](const crd::Pool& pool) { return is_found_by(*pod, pool.name); });
    return its == stack.spec.pools.end() ? nullptr : &*its;
  }
  for (const crd::Pool& pool : stack.spec.pools) {
    for (const crd::Endpoint& endpoint : pool.endpoints) {
      if (endpoint.name == worker) return &pool;
    }
  }
  return nullptr;
}

bool is_routable(const ClusterState& cluster, const Stack& stack, const std::string& worker) {
  const Pod* pod = pod_named(cluster, worker);
  if (pod != nullptr && pod->is_ending) return false;
  const Admission admission = admission_of(cluster, stack, worker);
  if (admission != Admission::Unknown) return admission == Admission::Admitted;
  // The last gate stays, so workers keep their requests while routers restart.
  return pod != nullptr && pod->routable.value_or(false);
}

std::string unseen_workers(const ClusterState& cluster, const Stack& stack) {
  for (const crd::Pool& pool : stack.spec.pools) {
    if (!pool.worker_template) continue;
    const auto found = std::find_if(
        cluster.deployments.begin(), cluster.deployments.end(), [&](const Deployment& one) {
          return one.component == desired::kWorker && one.revision == stack.revision &&
                 one.pool == pool.name;
        });
    if (found == cluster.deployments.end()) {
      return "the operator does not find the Deployment of pool " + pool.name + " in revision " +
             stack.revision;
    }
    const auto seen = std::count_if(cluster.pods.begin(), cluster.pods.end(),
                                    [&](const Pod& pod) { return is_worker_of(pod, stack, pool); });
    // The Deployment counts more pods than this operator sees, so the list is incomplete.
    if (seen < found->pods) {
      return "Deployment " + found->name + " has " + std::to_string(found->pods) +
             " pods, but the operator finds " + std::to_string(seen);
    }
  }
  return {};
}

bool is_list_unknown(const ClusterState& cluster, const Stack& stack) {
  return workers_of(cluster, stack).empty() && !unseen_workers(cluster, stack).empty();
}

std::vector<std::string> workers_named_twice(const ClusterState& cluster) {
  std::map<std::string, std::vector<std::string>> pools;
  for (const crd::Pool& pool : cluster.spec.pools) {
    for (const crd::Endpoint& endpoint : pool.endpoints) pools[endpoint.name].push_back(pool.name);
    for (const Pod& pod : cluster.pods) {
      const bool is_its = pod.component.empty() || pod.component == desired::kWorker;
      if (is_its && is_found_by(pod, pool.name)) pools[pod.name].push_back(pool.name);
    }
  }
  std::vector<std::string> twice;
  for (const auto& [name, its] : pools) {
    if (its.size() < 2) continue;
    std::string text = name + " (";
    for (const std::string& pool : its) text += (&pool == its.data() ? "" : ", ") + pool;
    twice.push_back(text + ")");
  }
  return twice;
}

std::vector<WorkerFields> workers_of(const ClusterState& cluster, const Stack& stack) {
  std::vector<WorkerFields> workers;
  for (const crd::Pool& pool : stack.spec.pools) {
    for (const crd::Endpoint& endpoint : pool.endpoints) {
      workers.push_back(fields_of(stack.spec, pool, endpoint.name, endpoint.url));
    }
    for (const Pod& pod : cluster.pods) {
      // A pod without an address cannot be reached yet.
      if (!is_worker_of(pod, stack, pool) || pod.ip.empty()) continue;
      const std::string host = pod.ip.find(':') == std::string::npos ? pod.ip : "[" + pod.ip + "]";
      WorkerFields fields = fields_of(stack.spec, pool, pod.name,
                                      "http://" + host + ":" + std::to_string(port_of(pool)));
      // Stays in the list, because its requests may still run.
      if (pod.is_ending) fields["drain"] = "true";
      workers.push_back(std::move(fields));
    }
  }
  return desired::by_name_once(std::move(workers));
}

Admission admission_of(const ClusterState& cluster, const Stack& stack, const std::string& worker) {
  const crd::Pool* pool = pool_of_worker(cluster, stack, worker);
  // A worker of no pool is no worker of this revision.
  if (pool == nullptr) return Admission::Refused;
  std::int64_t answers = 0;
  std::int64_t admitted = 0;
  for (const RouterReport& router : cluster.routers) {
    if (router.revision != stack.revision || !router.problem.empty() || !router.is_ready) continue;
    // A router without this worker in its list answers too: it has not admitted it.
    ++answers;
    const auto report = router.workers.find(worker);
    if (report == router.workers.end()) continue;
    if (is_admitted(stack.spec, *pool, report->second)) ++admitted;
  }
  // A majority of the routers that the spec asks for. Routers that are missing or not ready do not
  // vote.
  const std::int64_t quorum = stack.spec.router.replicas / 2 + 1;
  if (admitted >= quorum) return Admission::Admitted;
  return answers >= quorum ? Admission::Refused : Admission::Unknown;
}

std::map<Admission, std::int64_t> lent_to(const ClusterState& cluster, const Stack& stack) {
  std::map<Admission, std::int64_t> lent;
  for (const WorkerFields& worker : workers_of(cluster, stack)) {
    const std::string& name = worker.at("name");
    const crd::Pool* pool = pool_of_worker(cluster, stack, name);
    if (pool == nullptr || pool->worker_template || worker.contains("drain")) continue;
    ++lent[admission_of(cluster, stack, name)];
  }
  return lent;
}

std::vector<plan::Revision> revisions_of(const ClusterState& cluster) {
  std::vector<plan::Revision> revisions;
  for (const Stack& stack : cluster.stacks) {
    plan::Revision revision{
        .name = stack.revision, .pools = {}, .lent = lent_to(cluster, stack)[Admission::Admitted]};
    for (const crd::Pool& pool : stack.spec.pools) {
      if (pool.worker_template) revision.pools[pool.name] = count_of(cluster, stack, pool);
    }
    revisions.push_back(std::move(revision));
  }
  return revisions;
}

std::map<std::string, bool> gates_to_set(const ClusterState& cluster) {
  std::map<std::string, bool> gates;
  for (const Stack& stack : cluster.stacks) {
    for (const Pod& pod : cluster.pods) {
      const bool is_own = pod.component == desired::kWorker && pod.revision == stack.revision;
      if (!is_own || pod.is_over) continue;
      const Admission admission = admission_of(cluster, stack, pod.name);
      // An unknown admission changes no gate that has a value. A new pod still gets its first
      // value.
      if (admission == Admission::Unknown && pod.routable) continue;
      const bool wanted = admission == Admission::Admitted && !pod.is_ending;
      if (pod.routable != wanted) gates[pod.name] = wanted;
    }
  }
  return gates;
}

std::vector<desired::ForeignPod> foreign_pods(const ClusterState& cluster) {
  std::vector<desired::ForeignPod> foreign;
  for (const Pod& pod : cluster.pods) {
    if (!pod.component.empty()) continue;
    foreign.push_back({pod.pool, pod.name, pod.ip});
    for (const std::string& other : pod.also_in) foreign.push_back({other, pod.name, pod.ip});
  }
  return foreign;
}

std::map<std::string, std::string> lists_to_show(const ClusterState& cluster) {
  std::map<std::string, std::string> lists;
  const auto foreign = foreign_pods(cluster);
  for (const Stack& stack : cluster.stacks) {
    if (!desired::has_foreign_workers(stack.spec)) continue;
    const std::string digest = desired::digest_of_list(stack.spec, foreign);
    for (const Pod& pod : cluster.pods) {
      const bool is_its = pod.component == desired::kAgent && pod.revision == stack.revision;
      if (is_its && !pod.is_ending && !pod.is_over && pod.list != digest) lists[pod.name] = digest;
    }
  }
  return lists;
}

}  // namespace sightline::judge
