// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/consistency.h"

#include <algorithm>
#include <utility>

#include "operator/judge/conditions.h"
#include "operator/judge/pool_workers.h"

namespace sightline::judge {
namespace {

using crd::Condition;
using crd::ConditionStatus;

constexpr std::size_t kNamesMax = 5;  // named in one message

const Stack* stack_of(const ClusterState& cluster, const std::string& revision) {
  const auto found = std::find_if(cluster.stacks.begin(), cluster.stacks.end(),
                                  [&](const Stack& one) { return one.revision == revision; });
  return found == cluster.stacks.end() ? nullptr : &*found;
}

std::int64_t size_of(const WorkerReport& report) {
  return report.block_size != 0 ? report.block_size : report.block_size_configured;
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  std::size_t told = 0;
  for (const std::string& name : names) {
    if (told++ == kNamesMax)
      return text + " and " + std::to_string(names.size() - kNamesMax) + " more";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// "w3 (32 tokens)" of each worker whose block size differs from its revision's.
std::set<std::string> other_sizes(const ClusterState& cluster) {
  std::set<std::string> workers;
  for (const RouterReport& router : cluster.routers) {
    const Stack* stack = stack_of(cluster, router.revision);
    if (stack == nullptr) continue;
    for (const auto& [name, report] : router.workers) {
      // The operator gave the configured size to the router, so only the size of the engine's
      // events counts.
      const std::int64_t size = report.block_size;
      if (size == 0 || size == stack->spec.kv.block_size) continue;
      workers.insert(name + " (" + std::to_string(size) + " tokens, revision " + stack->revision +
                     " has " + std::to_string(stack->spec.kv.block_size) + ")");
    }
  }
  return workers;
}

// Members of two revisions may see each other. This is no fault.
std::set<std::string> misfits(const ClusterState& cluster, std::string_view difference) {
  std::set<std::string> members;
  for (const RouterReport& router : cluster.routers) {
    for (const Mismatch& misfit : router.misfits) {
      const bool is_model = misfit.difference == "model";
      if (misfit.difference == "revision" || is_model != (difference == "model")) continue;
      members.insert(misfit.name + " (" + misfit.reason + ")");
    }
  }
  return members;
}

std::set<std::string> pools_without_events(const ClusterState& cluster) {
  std::set<std::string> pools;
  for (const crd::Pool& pool : cluster.spec.pools) {
    // Routers do not read the events of TensorRT-LLM.
    if (pool.backend == crd::Backend::Trtllm) pools.insert(pool.name);
  }
  return pools;
}

Condition verdict(ConditionStatus status, std::string reason, std::string message) {
  Condition made;
  made.type = kIndexConsistent;
  made.status = status;
  made.reason = std::move(reason);
  made.message = std::move(message);
  return made;
}

}  // namespace

Condition index_consistent(const ClusterState& cluster) {
  const auto sizes = other_sizes(cluster);
  if (!sizes.empty()) {
    return verdict(ConditionStatus::False, "BlockSizeMismatch",
                   "these workers are not in the index, because their blocks have another size: " +
                       listed(sizes) + ". Start them with the block size of spec.kv.blockSize");
  }
  const auto models = misfits(cluster, "model");
  if (!models.empty()) {
    return verdict(ConditionStatus::False, "ModelMismatch",
                   "these members have other model files: " + listed(models) +
                       ". Give all members the same files, or change spec.model.revision");
  }
  const auto others = misfits(cluster, {});
  if (!others.empty()) {
    return verdict(ConditionStatus::False, "MemberMismatch",
                   "routers refuse these members: " + listed(others));
  }
  const auto blind = pools_without_events(cluster);
  if (!blind.empty()) {
    return verdict(ConditionStatus::False, "NotImplemented",
                   "routers cannot read the KV events of these pools yet and choose their workers "
                   "by load alone: " +
                       listed(blind));
  }
  const bool is_told = std::any_of(cluster.routers.begin(), cluster.routers.end(),
                                   [](const auto& router) { return router.problem.empty(); });
  if (!is_told)
    return verdict(ConditionStatus::Unknown, "NoRouterAnswers", "no router answers the operator");
  return verdict(ConditionStatus::True, "OneBlockSize",
                 "every worker and member matches its revision");
}

std::set<std::int64_t> block_sizes_of(const ClusterState& cluster, const std::string& pool) {
  std::set<std::int64_t> sizes;
  for (const RouterReport& router : cluster.routers) {
    const Stack* stack = stack_of(cluster, router.revision);
    if (stack == nullptr) continue;
    for (const auto& [name, report] : router.workers) {
      const auto* its_pool = pool_of_worker(cluster, *stack, name);
      if (its_pool != nullptr && its_pool->name == pool && size_of(report) > 0) {
        sizes.insert(size_of(report));
      }
    }
  }
  return sizes;
}

std::string why_not_routable(const ClusterState& cluster) {
  for (const RouterReport& router : cluster.routers) {
    if (!router.problem.empty()) continue;
    for (const auto& [name, report] : router.workers) {
      if (!report.is_ready)
        return name + ": " + (report.reason.empty() ? report.state : report.reason);
    }
  }
  for (const RouterReport& router : cluster.routers) {
    if (!router.problem.empty()) return router.pod + ": " + router.problem;
  }
  return {};
}

}  // namespace sightline::judge
