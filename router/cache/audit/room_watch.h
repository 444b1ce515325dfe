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

// A followed cache and its size.
struct CacheRoom {
  CacheId cache;
  std::string worker;
  // Blocks on the rank's GPU, as the rank reports them. 0: unknown.
  std::uint64_t blocks = 0;
};

// Handles blocks that the index did not take. It reports which caches lack blocks and why, and
// which caches hold more blocks than their engines have. When the index has room, it requests the
// refused blocks again.
// Thread safety: one thread calls look(), any thread the other methods.
class RoomWatch {
 public:
  // What RoomWatch uses of the rest of the router. The functions return soon.
  struct Deps {
    const index::IndexStatistics& index;
    // Audit::Deps::facts.
    std::function<std::optional<operations::CacheFacts>(CacheId)> facts;
    // Sets the number of blocks that engines have, for each cache whose number is known.
    std::function<void(const std::vector<CacheRoom>&)> set_bounds;
    // Returns the caches whose blocks gave way to others since the last call.
    std::function<std::vector<CacheId>()> take_gave_way;
    // Requests all blocks of the cache again. Returns false if no process can send them.
    std::function<bool(CacheId)> ask_again;
  };
  struct Options {
    // The pause between two requests for one cache. It doubles up to the maximum while the index
    // refuses its blocks again.
    Duration ask_pause_min = std::chrono::seconds(10);
    Duration ask_pause_max = std::chrono::minutes(5);
    // The limit of requests in one look. The blocks of one request may already fill the index.
    std::size_t asks_max = 4;
  };

  RoomWatch(const Options& options, Deps router, runtime::Metrics& metrics)
      : options_(options), router_(std::move(router)), metrics_(metrics) {}

  // Call this every few seconds, with all followed caches.
  void look(const std::vector<CacheRoom>& rooms, Instant now);
  // Returns why the index lacks blocks of the cache, or has more than it should. Empty if neither
  // is true. This is the result of the last look().
  [[nodiscard]] std::string_view lack_of(CacheId cache) const;

 private:
  struct Watched {
    // The result of lack_of().
    std::string_view lack;
    // It exceeded its engine's size at the last look.
    bool was_beyond = false;
    // The earliest time of the next request.
    Instant ask_from{};
    // The pause after the last request. 0: no request yet.
    Duration pause{};
  };
  // Counts and logs the caches whose blocks the index dropped.
  void name_those_that_gave_way(const std::vector<CacheRoom>& rooms);
  // Returns the reason for lack_of(), and updates was_beyond.
  [[nodiscard]] std::string_view find_lack(const CacheRoom& room, Watched& watched) const;
  // Makes the reasons visible to lack_of().
  void publish(const std::map<CacheId, Watched>& watched);
  void ask_again(const CacheRoom& room, Watched& watched, Instant now);

  const Options options_;
  const Deps router_;
  runtime::Metrics& metrics_;
  // Only for the thread that calls look().
  std::map<CacheId, Watched> watched_;
  // Held for memory work only.
  mutable Mutex mutex_;
  std::map<CacheId, std::string_view> lacks_ SL_GUARDED_BY(mutex_);  // without empty reasons.
};

}  // namespace sightline::audit
