// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/snapshot.h"

#include <algorithm>
#include <string>

namespace sightline::fleet {

std::shared_ptr<const Worker> FleetSnapshot::find(std::string_view name) const {
  const auto found = std::find_if(workers.begin(), workers.end(),
                                  [name](const auto& worker) { return worker->spec.name == name; });
  return found == workers.end() ? nullptr : *found;
}

std::shared_ptr<const Worker> FleetSnapshot::find(CacheId cache) const {
  const auto found = std::find_if(workers.begin(), workers.end(), [cache](const auto& worker) {
    return worker->find(cache) != nullptr;
  });
  return found == workers.end() ? nullptr : *found;
}

Result<Done> check_serving(const FleetSnapshot& fleet) {
  const auto& workers = fleet.workers;
  const bool may_serve = std::any_of(workers.begin(), workers.end(), [](const auto& worker) {
    // Suspect workers get requests if there is no other, so they count.
    return worker->is_routable() || worker->state == WorkerState::Suspect;
  });
  if (may_serve) return Done{};
  std::string message = "0 of " + std::to_string(workers.size()) + " workers may take a request";
  if (!workers.empty()) {
    const Worker& first = *workers.front();
    message += ". Worker " + first.spec.name + " is " + std::string(name_of(first.state)) + ": " +
               first.reason;
  }
  return Error{ErrorCode::Unavailable, Blame::Worker, true, std::move(message), {}, {}};
}

}  // namespace sightline::fleet
