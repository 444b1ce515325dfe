// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/runtime/metrics.h"

#include "router/cache/index/prefix_index.h"
#include "router/cache/operations/facts.h"

namespace sightline::audit {

// A cache that is followed.
struct CacheRoom {
  CacheId cache;
  std::string worker;
  std::uint64_t blocks = 0;  // that it has on its GPU, as its rank tells; 0: not known
};

// Sees to what the index has not taken: says of which caches blocks are missing and why, names
// those that hold more than their engines have, and has refused blocks asked for again when there
// is room.
// Thread safety: look() from one thread, the rest from any.
class RoomWatch {
 public:
  // The functions return soon.
  struct Dependencies {
    const index::IndexStatistics& index;
    // As Audit's.
    std::function<std::optional<operations::CacheFacts>(CacheId)> facts;
    // What engines have room for; of all caches where it is known.
    std::function<void(const std::vector<CacheRoom>&)> set_bounds;
    // The caches whose blocks gave way to others since it was called last.
    std::function<std::vector<CacheId>()> take_gave_way;
    // Has all that the cache holds told to the index again. False: nobody can tell it.
    std::function<bool(CacheId)> ask_again;
  };
  struct Options {
    // Between two asks for one cache, doubled up to the most while blocks of it are refused again.
    Duration ask_pause_min = std::chrono::seconds(10);
    Duration ask_pause_max = std::chrono::minutes(5);
    std::size_t asks_max = 4;  // in one look: what one of them brings may fill the index
  };

  RoomWatch(const Options& options, Dependencies router, runtime::Metrics& metrics)
      : options_(options), router_(std::move(router)), metrics_(metrics) {}

  // To be called every few seconds, with all caches that are followed.
  void look(const std::vector<CacheRoom>& rooms, Instant now);
  // Why the index has not taken all that was announced of the cache, or took more than it should,
  // as of the last look; empty: it has.
  [[nodiscard]] std::string_view lack_of(CacheId cache) const;

 private:
  struct Watched {
    std::string_view lack;    // as lack_of()
    bool was_beyond = false;  // at the last look, its engine's room
    Instant ask_from{};
    Duration pause{};  // the last; 0: not asked yet
  };
  void name_those_that_gave_way(const std::vector<CacheRoom>& rooms);
  [[nodiscard]] std::string_view find_lack(const CacheRoom& room, Watched& watched) const;
  void publish(const std::map<CacheId, Watched>& watched);
  void ask_again(const CacheRoom& room, Watched& watched, Instant now);

  const Options options_;
  const Dependencies router_;
  runtime::Metrics& metrics_;
  std::map<CacheId, Watched> watched_;                               // of the thread that looks
  mutable Mutex mutex_;                                              // held for memory work only
  std::map<CacheId, std::string_view> lacks_ SL_GUARDED_BY(mutex_);  // where there is one
};

}  // namespace sightline::audit
