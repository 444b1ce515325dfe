// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/selection/destinations.h"

#include <algorithm>

namespace sightline::selection {
namespace {

bool is_tried(const Tried& tried, const std::string& name) {
  return std::find(tried.failed.begin(), tried.failed.end(), name) != tried.failed.end();
}

}  // namespace

// A worker with one rank needs no number.
std::optional<std::uint32_t> Destination::rank_number() const {
  if (!worker->has_several_ranks()) return std::nullopt;
  return rank().number;
}

std::vector<Destination> destinations_for(const fleet::FleetSnapshot& fleet,
                                          const Inquiry& inquiry) {
  const Tried& tried = inquiry.tried;
  std::vector<Destination> destinations;
  destinations.reserve(fleet.workers.size());
  // Suspect workers are a second pass. They are used only if the first pass finds no worker.
  for (const bool as_last_resort : {false, true}) {
    for (const auto& worker : fleet.workers) {
      const bool may_serve =
          as_last_resort ? worker->state == fleet::WorkerState::Suspect : worker->is_routable();
      if (!may_serve || is_tried(tried, worker->spec.name)) continue;
      // All workers serve the base model. An adapter must be loaded on the worker.
      if (inquiry.adapter && !worker->serves(*inquiry.adapter)) continue;
      if (!worker->takes_prompt_of(inquiry.first_prompt_tokens)) continue;
      for (std::size_t i = 0; i < worker->ranks.size(); ++i) destinations.push_back({worker, i});
    }
    if (!destinations.empty()) break;
  }
  const auto is_other = [&tried](const Destination& destination) {
    return destination.worker->spec.name != tried.again;
  };
  // If the worker is gone, any other one may serve the request.
  if (!tried.again.empty() && !std::all_of(destinations.begin(), destinations.end(), is_other)) {
    std::erase_if(destinations, is_other);
  }
  return destinations;
}

std::uint32_t too_short_for(const fleet::FleetSnapshot& fleet, const Inquiry& inquiry) {
  Inquiry any = inquiry;
  // Workers that failed the request count too. The prompt is too long only if no worker takes it.
  any.tried = {};
  if (!destinations_for(fleet, any).empty()) return 0;
  any.first_prompt_tokens = 0;
  std::uint32_t longest = 0;
  for (const Destination& destination : destinations_for(fleet, any)) {
    longest = std::max(longest, destination.worker->max_model_len);
  }
  return longest;
}

std::optional<CacheId> precise_cache(const Destination& destination, std::uint32_t block_size) {
  const fleet::Worker& worker = *destination.worker;
  // Only the blocks of a ready worker with complete events count.
  if (!worker.is_precise(destination.rank())) return std::nullopt;
  if (worker.block_size.tokens() != block_size) return std::nullopt;
  return destination.rank().feed->cache;
}

}  // namespace sightline::selection
