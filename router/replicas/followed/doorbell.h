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

// Tells one reader which of its many inboxes have something.
// Thread safety: bells and wake() from any thread, wait() and answered() from the reader's.
class Doorbell {
 public:
  // One inbox's; may live longer than the doorbell's other users.
  class Bell {
   public:
    Bell(std::shared_ptr<Doorbell> door, CacheId cache) : door_(std::move(door)), cache_(cache) {}
    void ring() {
      if (!is_rung_.exchange(true)) door_->push(cache_);
    }
    // To be called before its inbox is read: what comes from then on rings again.
    void answered() { is_rung_ = false; }

   private:
    const std::shared_ptr<Doorbell> door_;
    const CacheId cache_;
    std::atomic<bool> is_rung_ = false;
  };

  void wake() {
    {
      const MutexLock lock(mutex_);
      is_woken_ = true;
    }
    changed_.notify_one();
  }

  // Whose bells were rung since the last call. Waits for one, or wake(), until then.
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
  static constexpr Duration kWaitMax = std::chrono::hours(1);

  void push(CacheId cache) {
    {
      const MutexLock lock(mutex_);
      rung_.push_back(cache);
    }
    changed_.notify_one();
  }

  Mutex mutex_;  // held for memory work only
  CondVar changed_;
  std::vector<CacheId> rung_ SL_GUARDED_BY(mutex_);  // each at most once until it is answered
  bool is_woken_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline::followed
