// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "common/base/mutex.h"

namespace sightline {

// First-in first-out queue with a fixed capacity between threads.
// Thread safety: all methods from any thread.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity_max) : capacity_max_(capacity_max) {}

  // False, and the drop is counted, when the queue is full or closed.
  bool push(T item) {
    {
      const MutexLock lock(mutex_);
      if (closed_ || items_.size() >= capacity_max_) {
        ++dropped_;
        return false;
      }
      items_.push_back(std::move(item));
    }
    ready_.notify_one();
    return true;
  }

  // Waits for an item; nothing once the queue is closed and empty.
  std::optional<T> pop() {
    const MutexLock lock(mutex_);
    ready_.wait(mutex_, [this]() SL_REQUIRES(mutex_) { return closed_ || !items_.empty(); });
    return take();
  }

  // The same, but waits no longer than that: nothing then, too. time_max: of hours at most.
  std::optional<T> pop_for(Duration time_max) {
    const MutexLock lock(mutex_);
    ready_.wait_for(mutex_, time_max,
                    [this]() SL_REQUIRES(mutex_) { return closed_ || !items_.empty(); });
    return take();
  }

  void close() {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

  [[nodiscard]] std::uint64_t dropped() const {
    const MutexLock lock(mutex_);
    return dropped_;
  }

 private:
  std::optional<T> take() SL_REQUIRES(mutex_) {
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  const std::size_t capacity_max_;
  mutable Mutex mutex_;
  CondVar ready_;
  std::deque<T> items_ SL_GUARDED_BY(mutex_);
  std::uint64_t dropped_ SL_GUARDED_BY(mutex_) = 0;
  bool closed_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline
