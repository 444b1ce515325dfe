// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"

#include "router/front/selection/selection.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::selection {

// The target of a request: a data-parallel rank of a worker. Most workers have only one.
struct Destination {
  std::shared_ptr<const fleet::Worker> worker;
  // Index in worker->ranks.
  std::size_t place = 0;

  [[nodiscard]] const fleet::Rank& rank() const { return worker->ranks[place]; }
  // The number of the rank for the request to the worker. Absent if the worker has only one rank.
  [[nodiscard]] std::optional<std::uint32_t> rank_number() const;
};

// Returns all destinations of the workers that may serve a request, in the order of the fleet.
// - A worker that failed this request is left out with all its ranks, because they share one
//   server.
// - Without any ready worker, the destinations of suspect workers are returned. They failed other
//   requests a moment ago, but are better than no worker.
// - A request for an adapter needs a worker that has loaded it.
// - A prompt needs a worker with a context long enough for it.
// - With `tried.again`, only the destinations of this worker are returned, as long as it is among
//   them.
std::vector<Destination> destinations_for(const fleet::FleetSnapshot& fleet,
                                          const Inquiry& inquiry);
// Returns the longest prompt that a destination takes, if a shorter prompt would have a destination
// and this one has not. Returns 0 if this prompt has a destination, or if no prompt has one. The
// unit is tokens.
std::uint32_t too_short_for(const fleet::FleetSnapshot& fleet, const Inquiry& inquiry);

// Returns the cache of a destination, if its announced blocks may be compared with keys of this
// block size.
std::optional<CacheId> precise_cache(const Destination& destination, std::uint32_t block_size);

}  // namespace sightline::selection
