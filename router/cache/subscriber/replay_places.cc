// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/replay_places.h"

#include <algorithm>

namespace sightline::subscriber {

void ReplayPlaces::want(CacheId engine) {
  if (taken_.contains(engine) || !waiting_.insert(engine).second) return;
  order_.push_back(engine);
}

void ReplayPlaces::give_up(CacheId engine) {
  taken_.erase(engine);
  if (waiting_.erase(engine) == 0) return;
  order_.erase(std::find(order_.begin(), order_.end(), engine));
}

std::optional<CacheId> ReplayPlaces::next() {
  if (order_.empty() || taken_.size() >= kPlaces) return std::nullopt;
  const auto engine = order_.front();
  order_.pop_front();
  waiting_.erase(engine);
  taken_.insert(engine);
  return engine;
}

}  // namespace sightline::subscriber
