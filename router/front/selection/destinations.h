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

// What a request is sent to: a data-parallel rank of a worker, which for most is the only one.
struct Destination {
  std::shared_ptr<const fleet::Worker> worker;
  std::size_t place = 0;  // in worker->ranks

  [[nodiscard]] const fleet::Rank& rank() const { return worker->ranks[place]; }
  // The rank's number where the worker has to be told; nothing where it has only one.
  [[nodiscard]] std::optional<std::uint32_t> rank_number() const;
};

// All destinations of the workers that may take a request, in the order of the fleet; a worker that
// failed it is left out with all its ranks: they share its server. Where there is none, those of
// suspect workers: one that failed others a moment ago is a better chance than none. A request for
// an adapter is for those that have loaded it; a prompt for those whose context it fits. Of a
// worker to be asked again, its destinations alone.
std::vector<Destination> destinations_for(const fleet::FleetSnapshot& fleet,
                                          const Inquiry& inquiry);
// Of Destinations that there would be for a shorter prompt, the longest that one takes; 0: there
// are none, or there is one for this prompt.
std::uint32_t too_short_for(const fleet::FleetSnapshot& fleet, const Inquiry& inquiry);

// Its cache, if the blocks it announced may be compared with keys of this block size.
std::optional<CacheId> precise_cache(const Destination& destination, std::uint32_t block_size);

}  // namespace sightline::selection
