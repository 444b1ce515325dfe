// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "common/base/clock.h"

namespace sightline::http {

// How slow a peer may be with the bytes of one message. Counts only the time spent in waiting for
// the peer, not the time that this process takes.
// Thread safety: one thread at a time.
class Pace {
 public:
  struct Limits {
    // Of one wait.
    Duration stall;
    // Of all waits together.
    Duration total_max = Duration::max();
    // The least rate. The peer may fall behind it by at most `grace` of waiting. 0: any rate.
    std::size_t bytes_per_s_min = 0;
    Duration grace{};
  };
  // Starts with the full grace.
  explicit Pace(const Limits& limits)
      : limits_(limits), left_(limits.total_max), credit_(limits.grace) {}

  // The longest that the next wait may last. Zero when the time is up.
  [[nodiscard]] Duration patience() const {
    Duration longest = std::min(limits_.stall, left_);
    if (limits_.bytes_per_s_min > 0) longest = std::min(longest, credit_);
    return std::max(longest, Duration::zero());
  }

  // Records a wait of this length, and this number of bytes that the peer sent or took.
  void add(Duration waited, std::size_t bytes) {
    left_ -= waited;
    if (limits_.bytes_per_s_min == 0) return;
    const std::chrono::duration<double> grace = limits_.grace;
    const std::chrono::duration<double> earned(static_cast<double>(bytes) /
                                               static_cast<double>(limits_.bytes_per_s_min));
    // Bytes restore the grace, but never beyond its full length: a fast start must not pay for a
    // long stall later.
    credit_ += std::chrono::duration_cast<Duration>(std::min(earned, grace)) - waited;
    credit_ = std::min(credit_, limits_.grace);
  }

 private:
  Limits limits_;
  Duration left_;
  Duration credit_;
};

}  // namespace sightline::http
