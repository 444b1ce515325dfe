// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace sightline::followed {

// Wakes one reader of many inboxes, and names the inboxes that have something. Without it, the
// reader would have to look into each inbox.
// Thread safety: ring() and wake() from any thread, wait() and answered() from the reader's thread.
class Doorbell {
 public:
  // The bell of one inbox. It keeps its doorbell alive.
  class Bell {
   public:
    // Does not ring.
    Bell(std::shared_ptr<Doorbell> door, CacheId cache) : door_(std::move(door)), cache_(cache) {}
    // Wakes the reader, unless this bell waits already.
    void ring() {
      if (!is_rung_.exchange(true)) door_->push(cache_);
    }
    // Call it before the inbox is read. Later messages ring again, so no message is left unnoticed.
    void answered() { is_rung_ = false; }

   private:
    // Keeps the doorbell alive, because NATS may ring after the stream has ended.
    const std::shared_ptr<Doorbell> door_;
    const CacheId cache_;
    // True from a ring() to the next answered().
    std::atomic<bool> is_rung_ = false;
  };

  // Ends a wait() without a bell.
  void wake() {
    {
      const MutexLock lock(mutex_);
      is_woken_ = true;
    }
    changed_.notify_one();
  }

  // Waits until a bell rings, wake() is called or `until` has passed. Returns the caches whose
  // bells rang since the last call.
  std::vector<CacheId> wait(Instant until) {
    std::vector<CacheId> rung;
    const MutexLock lock(mutex_);
    const auto has_news = [this]() SL_REQUIRES(mutex_) { return is_woken_ || !rung_.empty(); };
    const Duration left = until - system_clock().now();
    if (left > Duration::zero()) changed_.wait_for(mutex_, std::min(left, kWaitMax), has_news);
    rung.swap(rung_);
    is_woken_ = false;
    return rung;
  }

 private:
  // A wait of the library's condition variable must not overflow. A longer wait ends early and
  // returns nothing.
  static constexpr Duration kWaitMax = std::chrono::hours(1);

  // Notes a bell that rang, and wakes the reader.
  void push(CacheId cache) {
    {
      const MutexLock lock(mutex_);
      rung_.push_back(cache);
    }
    changed_.notify_one();
  }

  // Held for memory work only.
  Mutex mutex_;
  CondVar changed_;
  // Each at most once until answered.
  std::vector<CacheId> rung_ SL_GUARDED_BY(mutex_);
  // A wake() that no wait() has returned for.
  bool is_woken_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline::followed
