// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/counts.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "operator/crd/words.h"
#include "operator/desired/object_names.h"
#include "operator/judge/pool_workers.h"

namespace sightline::judge {

crd::ReadyCount ready_of(const ClusterState& cluster, std::string_view component) {
  crd::ReadyCount count;
  for (const Deployment& deployment : cluster.deployments) {
    if (deployment.component == component) count.desired += deployment.wanted;
  }
  for (const Pod& pod : cluster.pods) {
    const bool is_it = pod.component == component && !pod.is_ending && !pod.is_over;
    if (is_it && pod.is_ready) ++count.ready;
  }
  return count;
}

std::int64_t wanted_of(const ClusterState& cluster, const crd::Pool& pool) {
  if (cluster.spec.suspend) return 0;
  const auto scaled = cluster.scales.find(pool.name);
  if (pool.autoscaling) {
    const std::int64_t asked =
        scaled == cluster.scales.end() ? pool.autoscaling->min_replicas : scaled->second;
    return std::clamp(asked, pool.autoscaling->min_replicas, pool.autoscaling->max_replicas);
  }
  return pool.replicas.value_or(1);
}

crd::ReadyCount routable_of(const ClusterState& cluster) {
  crd::ReadyCount count;
  for (const crd::Pool& pool : cluster.spec.pools) {
    if (pool.worker_template) count.desired += wanted_of(cluster, pool);
    count.desired += static_cast<std::int64_t>(pool.endpoints.size());
    if (!pool.selector) continue;
    for (const Pod& pod : cluster.pods) {
      if (pod.pool == pool.name && !pod.is_ending && !pod.is_over) ++count.desired;
    }
  }
  // A worker that others run may be in the lists of two revisions.
  std::set<std::string> routable;
  for (const Stack& stack : cluster.stacks) {
    for (const auto& worker : workers_of(cluster, stack)) {
      const std::string& name = worker.at("name");
      if (!worker.contains("drain") && is_routable(cluster, stack, name)) routable.insert(name);
    }
  }
  count.ready = static_cast<std::int64_t>(routable.size());
  return count;
}

bool has_answering_worker(const ClusterState& cluster) {
  // The states in which a router chooses a worker, by its blocks or only by load.
  constexpr std::array<std::string_view, 3> kChosen = {"ready", "unverified", "excluded"};
  for (const RouterReport& router : cluster.routers) {
    if (!router.problem.empty() || !router.is_ready) continue;
    for (const auto& [name, report] : router.workers) {
      if (std::find(kChosen.begin(), kChosen.end(), report.state) != kChosen.end()) return true;
    }
  }
  return routable_of(cluster).ready > 0;
}

bool is_replaced(const ClusterState& cluster, const Stack& older) {
  const Stack& target = cluster.stacks.back();
  auto lent = lent_to(cluster, older);
  // A worker with an unknown admission may still serve.
  const std::int64_t held = lent[Admission::Admitted] + lent[Admission::Unknown];
  const std::int64_t needed = std::min(held, routable_of(cluster).desired);
  if (needed == 0) return true;
  std::int64_t routable = 0;
  for (const auto& worker : workers_of(cluster, target)) {
    if (is_routable(cluster, target, worker.at("name"))) ++routable;
  }
  const bool has_frontend =
      std::any_of(cluster.pods.begin(), cluster.pods.end(), [&](const Pod& pod) {
        return pod.component == desired::kFrontend && pod.revision == target.revision &&
               pod.is_ready && !pod.is_ending;
      });
  return routable >= needed && has_frontend;
}

std::string ready_text(const ClusterState& cluster) {
  const crd::ReadyCount workers = routable_of(cluster);
  const crd::ReadyCount routers = ready_of(cluster, desired::kRouterComponent);
  return "block size " + std::to_string(cluster.spec.kv.block_size) + ", transfer " +
         std::string(crd::word_of(cluster.spec.transfer.mode)) + ", workers " +
         std::to_string(workers.ready) + "/" + std::to_string(workers.desired) + ", routers " +
         std::to_string(routers.ready);
}

}  // namespace sightline::judge
