// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/learnt.h"

#include <algorithm>
#include <cstddef>

namespace sightline::fleet {
namespace {

// Returns the missing part of a worker, empty if nothing is missing.
std::string lacks(const Worker& worker) {
  if (!worker.was_asked) return "was not asked yet";
  const bool takes_requests = worker.is_routable();
  if (!takes_requests) return {};
  for (const Rank& rank : worker.ranks) {
    if (!rank.feed || rank.feed->unverified.empty()) continue;
    if (!worker.has_several_ranks()) return rank.feed->unverified;
    return "rank " + std::to_string(rank.number) + ": " + rank.feed->unverified;
  }
  return {};
}

}  // namespace

std::string why_not_learnt(const FleetSnapshot& fleet,
                           const std::vector<contract::WorkerSpec>& workers) {
  // Between a push and the fleet's next snapshot, the snapshot has the earlier list.
  const bool is_taken_over =
      std::equal(fleet.workers.begin(), fleet.workers.end(), workers.begin(), workers.end(),
                 [](const auto& worker, const auto& spec) { return worker->spec == spec; });
  if (!is_taken_over) return "the new worker list is not applied yet";
  std::size_t missing = 0;
  std::string first;
  for (const auto& worker : fleet.workers) {
    const std::string lack = lacks(*worker);
    if (lack.empty()) continue;
    if (missing++ == 0) first = worker->spec.name + ": " + lack;
  }
  if (missing == 0) return {};
  return std::to_string(missing) + " of " + std::to_string(workers.size()) +
         " workers are pending, first " + first;
}

}  // namespace sightline::fleet
