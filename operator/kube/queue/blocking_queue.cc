// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/queue/blocking_queue.h"

#include <chrono>
#include <utility>

#include "common/contract/controller_metrics.h"

namespace sightline::queue {
namespace {

// One wait, if no item has a time at which it becomes ready.
constexpr std::chrono::minutes kLongWait{10};

double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

BlockingQueue::BlockingQueue(std::string_view name, const RateLimits& limits, const Clock& clock,
                             runtime::Metrics& metrics)
    : clock_(clock),
      depth_gauge_(metrics.gauge(contract::kWorkqueueDepth, {name, name, ""})),
      adds_(metrics.counter(contract::kWorkqueueAddsTotal, {name, name})),
      retries_(metrics.counter(contract::kWorkqueueRetriesTotal, {name, name})),
      queue_seconds_(metrics.histogram(contract::kWorkqueueQueueSeconds, {name, name})),
      work_seconds_(metrics.histogram(contract::kWorkqueueWorkSeconds, {name, name})),
      unfinished_seconds_(metrics.gauge(contract::kWorkqueueUnfinishedSeconds, {name, name})),
      longest_seconds_(metrics.gauge(contract::kWorkqueueLongestSeconds, {name, name})),
      queue_(limits) {}

void BlockingQueue::note_change() {
  ++changes_;
  // The counter gets only the difference, because an add may be a duplicate.
  adds_.add(static_cast<double>(queue_.added_total() - adds_told_));
  adds_told_ = queue_.added_total();
  depth_gauge_.set(static_cast<double>(queue_.depth()));
}

void BlockingQueue::add(const object::Key& item) {
  {
    const MutexLock lock(mutex_);
    queue_.add(item, clock_.now());
    note_change();
  }
  changed_.notify_all();
}

void BlockingQueue::add_changed(const object::Key& item) {
  {
    const MutexLock lock(mutex_);
    queue_.add_changed(item, clock_.now());
    note_change();
  }
  changed_.notify_all();
}

void BlockingQueue::add_after(const object::Key& item, Duration wait) {
  {
    const MutexLock lock(mutex_);
    const Instant now = clock_.now();
    queue_.add_at(item, now, now + wait);
    note_change();
  }
  changed_.notify_all();
}

void BlockingQueue::add_rate_limited(const object::Key& item, Duration at_least) {
  retries_.add();
  {
    const MutexLock lock(mutex_);
    queue_.add_rate_limited(item, clock_.now(), at_least);
    note_change();
  }
  changed_.notify_all();
}

void BlockingQueue::forget(const object::Key& item) {
  const MutexLock lock(mutex_);
  queue_.forget(item);
}

std::optional<object::Key> BlockingQueue::take(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const Instant now = clock_.now();
    auto taken = queue_.take(now);
    if (taken) {
      note_change();
      queue_seconds_.observe(seconds_of(taken->waited));
      return std::move(taken->item);
    }
    // Waits for any change, because an earlier item may have become the next.
    const std::size_t seen = changes_;
    const Instant until = queue_.next_ready().value_or(now + kLongWait);
    changed_.wait_until(mutex_, stop, system_clock().now() + (until - now),
                        [&]() SL_REQUIRES(mutex_) { return changes_ != seen; });
  }
  return std::nullopt;
}

void BlockingQueue::done(const object::Key& item) {
  {
    const MutexLock lock(mutex_);
    const auto worked = queue_.done(item, clock_.now());
    if (worked) work_seconds_.observe(seconds_of(*worked));
    note_change();
  }
  changed_.notify_all();
}

std::size_t BlockingQueue::depth() const {
  const MutexLock lock(mutex_);
  return queue_.depth();
}

void BlockingQueue::refresh_metrics() const {
  WorkQueue::Unfinished unfinished;
  // The gauges have locks of their own.
  {
    const MutexLock lock(mutex_);
    unfinished = queue_.unfinished(clock_.now());
  }
  unfinished_seconds_.set(seconds_of(unfinished.total));
  longest_seconds_.set(seconds_of(unfinished.longest));
}

}  // namespace sightline::queue
