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

// The metrics of workers' KV events, computed from the status of each rank. Counters rise by the
// difference to the last status. When a rank leaves, its last counts are added.
//
// Thread safety: any thread may call any method.
class EventMetrics {
 public:
  // The metrics must live longer.
  explicit EventMetrics(runtime::Metrics& metrics) : metrics_(metrics) {}

  // Starts to count a rank. Ranks that are not followed are ignored, because the series of their
  // worker may be gone.
  void follow(CacheId cache, std::string worker);
  // Stops to count a rank. `last` is its last status.
  void forget(CacheId cache, const std::optional<events::FeedStatus>& last);

  // Sets the totals of the index.
  void tell_index(std::uint64_t blocks_total, std::uint64_t refused_total);
  // Sets the bytes that wait for all ranks, and how often the limit was reached.
  void tell_held(std::size_t bytes, std::uint64_t hits_total);
  // Counts all ranks of one worker.
  void tell(const std::string& worker, std::span<const events::FeedStatus> feeds);

 private:
  struct FeedTotals {
    std::string worker;
    // The last values, by counter, kind of error or reason to ignore.
    std::map<std::string_view, std::uint64_t> totals;
    // Returns how far the total rose above its last value. It is 0 for a lower total.
    double rise(std::string_view key, std::uint64_t total);
  };

  // Adds to the counters of the worker what the status has counted since the last one.
  void advance(FeedTotals& cache, const events::FeedStatus& status) SL_REQUIRES(mutex_);
  // The same for counters by cause: errors, and events that are ignored.
  void advance_unused(FeedTotals& cache, const events::FeedStatus& status) SL_REQUIRES(mutex_);

  runtime::Metrics& metrics_;
  Mutex mutex_;
  std::map<CacheId, FeedTotals> feeds_ SL_GUARDED_BY(mutex_);
  // The last value.
  std::uint64_t refused_total_ SL_GUARDED_BY(mutex_) = 0;
  // The last value.
  std::uint64_t held_hits_total_ SL_GUARDED_BY(mutex_) = 0;
};

}  // namespace sightline::admin
