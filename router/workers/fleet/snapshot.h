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

// All workers at one moment. Immutable.
struct FleetSnapshot {
  std::uint64_t revision = 0;
  // Of the snapshot in which what the workers serve together last changed, or a later one; 0: there
  // never was one.
  std::uint64_t served_revision = 0;
  std::vector<std::shared_ptr<const Worker>> workers;  // in the order of the configuration
  std::uint32_t block_size = 0;  // tokens, of most workers whose events are followed; 0: not known
  // Names that stand for adapters, as most workers list them; not null.
  std::shared_ptr<const AdapterNames> adapter_names = std::make_shared<const AdapterNames>();

  // Nothing when there is no such worker.
  [[nodiscard]] std::shared_ptr<const Worker> find(std::string_view name) const;
  [[nodiscard]] std::shared_ptr<const Worker> find(CacheId cache) const;
};

// Done while a worker may take a request, if only as a last resort. The error says how many there
// are and what is the matter with the first.
Result<Done> check_serving(const FleetSnapshot& fleet);

}  // namespace sightline::fleet
