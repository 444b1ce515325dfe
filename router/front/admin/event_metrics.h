// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/runtime/metrics.h"

#include "router/cache/events/event_feed.h"

namespace sightline::admin {

// Metrics of workers' KV events, from what is known of each of their ranks. Counters rise by what
// came since they were told last; a rank that leaves has the rest of its counts added.
// Thread safety: all methods from any thread.
class EventMetrics {
 public:
  // Metrics outlive it.
  explicit EventMetrics(runtime::Metrics& metrics) : metrics_(metrics) {}

  // Ranks that are not followed (any more) are ignored: their worker's series may be gone.
  void follow(CacheId cache, std::string worker);
  // last: what is known of it at its end.
  void forget(CacheId cache, const std::optional<events::FeedStatus>& last);

  // The whole index as it is now.
  void tell_index(std::uint64_t blocks_total, std::uint64_t refused_total);
  // Of all ranks: bytes that wait, and how often as many did as may.
  void tell_held(std::size_t bytes, std::uint64_t hits_total);
  // All ranks of one worker as they are now.
  void tell(const std::string& worker, std::span<const events::FeedStatus> feeds);

 private:
  struct FeedTotals {
    std::string worker;
    // As last told, by counter, kind of error, or reason to ignore.
    std::map<std::string_view, std::uint64_t> totals;
    double rise(std::string_view key, std::uint64_t total);
  };

  void advance(FeedTotals& cache, const events::FeedStatus& status) SL_REQUIRES(mutex_);
  void advance_unused(FeedTotals& cache, const events::FeedStatus& status) SL_REQUIRES(mutex_);

  runtime::Metrics& metrics_;
  Mutex mutex_;
  std::map<CacheId, FeedTotals> feeds_ SL_GUARDED_BY(mutex_);
  std::uint64_t refused_total_ SL_GUARDED_BY(mutex_) = 0;    // as last told
  std::uint64_t held_hits_total_ SL_GUARDED_BY(mutex_) = 0;  // likewise
};

}  // namespace sightline::admin
