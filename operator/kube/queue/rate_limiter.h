// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <map>

#include "common/base/clock.h"

#include "operator/kube/object/resource.h"
#include "operator/kube/pace/token_bucket.h"

namespace sightline::queue {

// How long items wait after failures.
struct RateLimits {
  // Doubles with each failure of the item.
  Duration item_first = std::chrono::milliseconds(5);
  Duration item_max = std::chrono::seconds(30);
  // The most that an item waits after its last failure if its object has changed since then. After
  // many failures it waits at least half of this. Otherwise work that fails and changes its own
  // object would repeat without a pause.
  Duration changed_max = std::chrono::seconds(1);
  // Of all items together.
  double overall_per_second = 10;
  double overall_burst = 100;
};

// Decides how long a failed item waits before the next attempt. Pure.
// Thread safety: the caller's mutex guards it.
class RateLimiter {
 public:
  explicit RateLimiter(const RateLimits& limits)
      : limits_(limits), overall_(limits.overall_per_second, limits.overall_burst) {}

  // Counts a failure. Returns the longer one of the item's wait and of the wait for all items.
  Duration next_wait(const object::Key& item, Instant now);
  // The item's object has changed: the item waits as after fewer failures, at most changed_max.
  // Returns the time of the next attempt.
  Instant changed(const object::Key& item, Instant now);
  // The item succeeded, or its object is gone.
  void forget(const object::Key& item) { failures_.erase(item); }
  // The failures of the item in a row.
  [[nodiscard]] std::size_t failures(const object::Key& item) const;

 private:
  struct Failures {
    std::size_t count = 0;
    Instant last{};
  };
  [[nodiscard]] Duration wait_after(std::size_t failures) const;

  const RateLimits limits_;
  pace::TokenBucket overall_;
  std::map<object::Key, Failures> failures_;
};

}  // namespace sightline::queue
