// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <mutex>

#include "common/base/clock.h"

namespace sightline::test {

// A clock that moves only when told. Thread safety: all methods from any thread.
class ManualClock : public Clock {
 public:
  [[nodiscard]] Instant now() const override {
    const std::lock_guard lock(mutex_);
    return Instant(std::chrono::hours(1)) + passed_;
  }
  [[nodiscard]] WallTime wall() const override {
    const std::lock_guard lock(mutex_);
    return WallTime(std::chrono::hours(24 * 365 * 50)) + passed_;
  }
  void advance(Duration by) {
    const std::lock_guard lock(mutex_);
    passed_ += by;
  }

 private:
  mutable std::mutex mutex_;  // guards passed_
  Duration passed_{};
};

}  // namespace sightline::test
