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

// A WorkQueue between threads, which counts what it does under the names of client-go.
// Thread safety: all methods from any thread. Clock and metrics must outlive it.
class BlockingQueue {
 public:
  BlockingQueue(std::string_view name, const RateLimits& limits, const Clock& clock,
                runtime::Metrics& metrics);

  void add(const object::Key& item);
  void add_changed(const object::Key& item);
  void add_after(const object::Key& item, Duration wait);
  void add_rate_limited(const object::Key& item, Duration at_least = {});
  void forget(const object::Key& item);

  // Waits for an item; nothing once a stop is requested, whatever is left.
  std::optional<object::Key> take(const std::stop_token& stop);
  void done(const object::Key& item);

  [[nodiscard]] std::size_t depth() const;
  // Brings the gauges of work under way up to date: before each scrape.
  void refresh_metrics() const;

 private:
  // Says to metrics and to those who wait that the queue has changed.
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
  std::size_t changes_ SL_GUARDED_BY(mutex_) = 0;
  std::size_t adds_told_ SL_GUARDED_BY(mutex_) = 0;  // to the counter
};

}  // namespace sightline::queue
