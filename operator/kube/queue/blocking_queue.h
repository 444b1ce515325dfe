// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/runtime/metrics.h"

#include "operator/kube/queue/work_queue.h"

namespace sightline::queue {

// A WorkQueue between threads. It counts with the metrics of client-go.
// Thread safety: all methods from any thread. Clock and metrics must outlive it.
class BlockingQueue {
 public:
  BlockingQueue(std::string_view name, const RateLimits& limits, const Clock& clock,
                runtime::Metrics& metrics);

  // For these, see WorkQueue.
  void add(const object::Key& item);
  void add_changed(const object::Key& item);
  // Adds an item that needs work after this time.
  void add_after(const object::Key& item, Duration wait);
  // Also counts a retry.
  void add_rate_limited(const object::Key& item, Duration at_least = {});
  void forget(const object::Key& item);

  // Waits for an item. Returns nothing once a stop is requested, even if items are left.
  std::optional<object::Key> take(const std::stop_token& stop);
  // Ends the work on an item that take() gave.
  void done(const object::Key& item);

  // The items that wait to be taken.
  [[nodiscard]] std::size_t depth() const;
  // Updates the gauges of the work under way. Call it before each scrape.
  void refresh_metrics() const;

 private:
  // Updates the metrics and wakes the waiting threads after a change of the queue.
  void note_change() SL_REQUIRES(mutex_);

  const Clock& clock_;
  const runtime::Gauge depth_gauge_;
  const runtime::Counter adds_;
  const runtime::Counter retries_;
  const runtime::Histogram queue_seconds_;
  const runtime::Histogram work_seconds_;
  const runtime::Gauge unfinished_seconds_;
  const runtime::Gauge longest_seconds_;
  mutable Mutex mutex_;
  StopCondVar changed_;
  WorkQueue queue_ SL_GUARDED_BY(mutex_);
  // Grows with each change, so a waiting take() notices one.
  std::size_t changes_ SL_GUARDED_BY(mutex_) = 0;
  // The part of the queue's added_total() that `adds_` has.
  std::size_t adds_told_ SL_GUARDED_BY(mutex_) = 0;
};

}  // namespace sightline::queue
