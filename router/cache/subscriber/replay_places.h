// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>

#include "common/base/ids.h"

namespace sightline::subscriber {

// Whose replays are read: few at a time, the others in the order in which they came.
// Thread safety: none.
class ReplayPlaces {
 public:
  // Enough that ranks which look for requests every 100 ms, as vLLM's do, do not make a large
  // fleet wait; few enough that answers come faster than their publishers drop them.
  static constexpr std::size_t kPlaces = 16;

  // Waits for a place, unless it does so or has one.
  void want(CacheId cache);
  // Neither has a place nor waits for one any more.
  void give_up(CacheId cache);
  // Gives a free place to who waits longest.
  std::optional<CacheId> next();

  [[nodiscard]] bool has(CacheId cache) const { return taken_.contains(cache); }
  [[nodiscard]] bool wants(CacheId cache) const { return waiting_.contains(cache); }
  [[nodiscard]] bool anybody_waits() const { return !waiting_.empty(); }

 private:
  std::set<CacheId> taken_;
  std::set<CacheId> waiting_;
  std::deque<CacheId> order_;  // of those who wait
};

}  // namespace sightline::subscriber
