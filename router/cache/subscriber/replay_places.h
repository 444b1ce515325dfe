// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>

#include "common/base/ids.h"

namespace sightline::subscriber {

// Limits how many replays are read at a time. The other ranks wait in the order in which they came.
// Thread safety: one thread at a time.
class ReplayPlaces {
 public:
  // vLLM's ranks look for requests every 100 ms, and a large fleet must not wait for them one by
  // one. So several replays run. They are few, because answers must be read faster than their
  // publishers drop them.
  static constexpr std::size_t kPlaces = 16;

  // Waits for a place, unless the rank waits already or has one.
  void want(CacheId cache);
  // Returns the rank's place, and ends its wait.
  void give_up(CacheId cache);
  // Gives a free place to the rank that has waited longest. Empty if there is no place or no rank
  // waits.
  std::optional<CacheId> next();

  // Returns whether the rank has a place.
  [[nodiscard]] bool has(CacheId cache) const { return taken_.contains(cache); }
  // Returns whether the rank waits for a place.
  [[nodiscard]] bool wants(CacheId cache) const { return waiting_.contains(cache); }
  [[nodiscard]] bool anybody_waits() const { return !waiting_.empty(); }

 private:
  std::set<CacheId> taken_;
  std::set<CacheId> waiting_;
  std::deque<CacheId> order_;  // of the waiting ranks
};

}  // namespace sightline::subscriber
