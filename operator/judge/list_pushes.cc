// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/list_pushes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "operator/judge/pool_workers.h"

namespace sightline::judge {
namespace {

using object::Value;

Value list_of(const ClusterState& cluster, const Stack& stack) {
  Value list = Value::array();
  for (const desired::WorkerFields& fields : workers_of(cluster, stack)) {
    Value worker = Value::object();
    for (const auto& [name, value] : fields) worker.member(name) = value;
    list.append(std::move(worker));
  }
  return list;
}

bool answers_for(const RouterReport& router, const Stack& stack) {
  return router.revision == stack.revision && router.problem.empty();
}

bool holds(const RouterReport& router, const Value& list) {
  return router.generation && router.pushed == list;
}

// Routers refuse a list whose generation is this much higher than theirs (docs/api.md).
constexpr std::int64_t kGenerationStepMax = std::int64_t{1} << 56;
// Below the largest number, because generation_for() adds one.
constexpr std::int64_t kGenerationMax = std::numeric_limits<std::int64_t>::max() - 1;

// The newest generation whose successor all routers would accept. A router that reports one far
// above the others' must not keep lists from them.
std::int64_t newest_of(const ClusterState& cluster, const Stack& stack) {
  std::vector<std::int64_t> generations;
  for (const RouterReport& router : cluster.routers) {
    if (answers_for(router, stack) && router.generation) generations.push_back(*router.generation);
  }
  std::sort(generations.begin(), generations.end());
  std::int64_t newest = 0;
  for (const std::int64_t generation : generations) {
    const bool is_first = generation == generations.front();
    const bool is_near = generation <= newest || generation - newest < kGenerationStepMax;
    if (is_first || is_near) newest = std::max(newest, generation);
  }
  return std::min(newest, kGenerationMax);
}

std::int64_t generation_for(const ClusterState& cluster, const Stack& stack, const Value& list) {
  const std::int64_t newest = newest_of(cluster, stack);
  bool is_held = newest > 0;
  // If two lists have the same generation, both are old.
  for (const RouterReport& router : cluster.routers) {
    if (!answers_for(router, stack) || router.generation != newest) continue;
    is_held = is_held && holds(router, list);
  }
  return is_held ? newest : newest + 1;
}

}  // namespace

std::vector<ListPush> lists_to_push(const ClusterState& cluster) {
  std::vector<ListPush> pushes;
  for (const Stack& stack : cluster.stacks) {
    // An empty list would take from routers the workers that only this operator does not see.
    if (is_list_unknown(cluster, stack)) continue;
    const Value list = list_of(cluster, stack);
    Value body = Value::object();
    body.member("revision") = stack.revision;
    body.member("generation") = generation_for(cluster, stack, list);
    body.member("workers") = list;
    for (const RouterReport& router : cluster.routers) {
      if (!answers_for(router, stack)) continue;
      const bool is_latest = router.generation == body["generation"].integer();
      if (!is_latest || !holds(router, list)) pushes.push_back({router.pod, body});
    }
  }
  return pushes;
}

}  // namespace sightline::judge
