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

// A first-in first-out queue with a fixed capacity between threads. It drops what does not fit, so
// a slow reader never blocks a writer.
// Thread safety: all methods from any thread.
template <class T>
class BoundedQueue {
 public:
  // capacity_max is the most items that wait.
  explicit BoundedQueue(std::size_t capacity_max) : capacity_max_(capacity_max) {}

  // Adds an item and wakes one reader. Returns false, and counts a drop, if the queue is full or
  // closed.
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

  // Waits for an item. Returns nothing when the queue is closed and empty.
  std::optional<T> pop() {
    const MutexLock lock(mutex_);
    ready_.wait(mutex_, [this]() SL_REQUIRES(mutex_) { return closed_ || !items_.empty(); });
    return take();
  }

  // Like pop(), but waits at most time_max. Returns nothing after that time too. time_max must not
  // exceed a few hours: the library adds it to the present time.
  std::optional<T> pop_for(Duration time_max) {
    const MutexLock lock(mutex_);
    ready_.wait_for(mutex_, time_max,
                    [this]() SL_REQUIRES(mutex_) { return closed_ || !items_.empty(); });
    return take();
  }

  // Wakes all readers. They still get the items that the queue holds. push() fails from here on.
  void close() {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

  // Items that push() refused since construction.
  [[nodiscard]] std::uint64_t dropped() const {
    const MutexLock lock(mutex_);
    return dropped_;
  }

 private:
  // Takes the first item, if there is one.
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
