// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/snapshot.h"

#include <algorithm>

namespace sightline::fleet {

std::shared_ptr<const Worker> FleetSnapshot::find(std::string_view name) const {
  const auto found = std::find_if(workers.begin(), workers.end(),
                                  [name](const auto& worker) { return worker->name == name; });
  return found == workers.end() ? nullptr : *found;
}

std::shared_ptr<const Worker> FleetSnapshot::find(CacheId cache) const {
  const auto found = std::find_if(workers.begin(), workers.end(), [cache](const auto& worker) {
    return worker->find(cache) != nullptr;
  });
  return found == workers.end() ? nullptr : *found;
}

}  // namespace sightline::fleet
