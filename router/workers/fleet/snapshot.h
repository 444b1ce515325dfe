// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"

#include "router/workers/fleet/name_meanings.h"
#include "router/workers/fleet/worker.h"

namespace sightline::fleet {

// All workers at one moment. Immutable, so any thread may read it.
struct FleetSnapshot {
  // Rises with each snapshot.
  std::uint64_t revision = 0;
  // The revision of the snapshot in which Served last changed, or of a later one. 0: it never
  // changed.
  std::uint64_t served_revision = 0;
  // In the order of the configuration.
  std::vector<std::shared_ptr<const Worker>> workers;
  // Tokens, of most followed workers, 0: not known.
  std::uint32_t block_size = 0;
  // The names of adapters, as most workers list them. Never null.
  std::shared_ptr<const AdapterNames> adapter_names = std::make_shared<const AdapterNames>();

  // Returns null if no worker matches.
  [[nodiscard]] std::shared_ptr<const Worker> find(std::string_view name) const;
  [[nodiscard]] std::shared_ptr<const Worker> find(CacheId cache) const;
};

// Returns Done while a worker may take a request, even as the last resort. The error has their
// number and the state of the first one.
Result<Done> check_serving(const FleetSnapshot& fleet);

}  // namespace sightline::fleet
