// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cli/engines_check.h"

#include <algorithm>
#include <string>

namespace sightline::cli {

Result<Done> check_engines(const fleet::FleetSnapshot& fleet) {
  const auto& workers = fleet.workers;
  const bool may_serve = std::any_of(workers.begin(), workers.end(), [](const auto& worker) {
    return worker->is_routable() || worker->state == fleet::WorkerState::Suspect;
  });
  if (may_serve) return Done{};
  std::string message = "0 of " + std::to_string(workers.size()) + " workers may take a request";
  if (!workers.empty()) {
    const fleet::Worker& first = *workers.front();
    message += "; " + first.name + " is " + std::string(name_of(first.state)) + ": " + first.reason;
  }
  return Error{ErrorCode::Unavailable, Blame::Worker, true, std::move(message), {}, {}};
}

}  // namespace sightline::cli
