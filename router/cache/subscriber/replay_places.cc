// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/replay_places.h"

#include <algorithm>

namespace sightline::subscriber {

void ReplayPlaces::want(CacheId cache) {
  // A rank that asks again keeps its place in the order.
  if (taken_.contains(cache) || !waiting_.insert(cache).second) return;
  order_.push_back(cache);
}

void ReplayPlaces::give_up(CacheId cache) {
  taken_.erase(cache);
  if (waiting_.erase(cache) == 0) return;
  order_.erase(std::find(order_.begin(), order_.end(), cache));
}

std::optional<CacheId> ReplayPlaces::next() {
  if (order_.empty() || taken_.size() >= kPlaces) return std::nullopt;
  const auto cache = order_.front();
  order_.pop_front();
  waiting_.erase(cache);
  taken_.insert(cache);
  return cache;
}

}  // namespace sightline::subscriber
