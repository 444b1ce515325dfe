// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <map>

#include "common/base/clock.h"

#include "operator/kube/object/resource.h"
#include "operator/kube/pace/token_bucket.h"

namespace sightline::queue {

struct RateLimits {
  Duration item_first = std::chrono::milliseconds(5);  // doubled with every failure of the item
  Duration item_max = std::chrono::seconds(30);
  // Most that an item waits after its last failure where what it looks at has changed since. Once
  // it has failed often it waits for half of it at least, lest work that fails and changes what it
  // looks at is tried without a pause.
  Duration changed_max = std::chrono::seconds(1);
  double overall_per_second = 10;  // of all items together
  double overall_burst = 100;
};

// How long an item that failed waits before it is tried again. Pure; thread safety: none.
class RateLimiter {
 public:
  explicit RateLimiter(const RateLimits& limits)
      : limits_(limits), overall_(limits.overall_per_second, limits.overall_burst) {}

  // Counts a failure; the longer of what the item and what all items have to wait.
  Duration next_wait(const object::Key& item, Instant now);
  // What the item looks at has changed: it waits as if it had failed less often, changed_max at
  // most. When it may be tried.
  Instant changed(const object::Key& item, Instant now);
  // It succeeded, or it is gone.
  void forget(const object::Key& item) { failures_.erase(item); }
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
