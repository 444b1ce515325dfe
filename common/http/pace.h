// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "common/base/clock.h"

namespace sightline::http {

// How slow a peer may be with the bytes of one message. Only time spent waiting for it counts.
// Thread safety: none.
class Pace {
 public:
  struct Limits {
    Duration stall;                        // of one wait
    Duration total_max = Duration::max();  // of all waits together
    // Least rate: the peer may fall behind it by as much as `grace` of waiting. 0: any rate.
    std::size_t bytes_per_s_min = 0;
    Duration grace{};
  };
  explicit Pace(const Limits& limits)
      : limits_(limits), left_(limits.total_max), credit_(limits.grace) {}

  // How long the next wait may be; zero once the time is up.
  [[nodiscard]] Duration patience() const {
    Duration longest = std::min(limits_.stall, left_);
    if (limits_.bytes_per_s_min > 0) longest = std::min(longest, credit_);
    return std::max(longest, Duration::zero());
  }

  // It was waited so long, and that many bytes went over.
  void add(Duration waited, std::size_t bytes) {
    left_ -= waited;
    if (limits_.bytes_per_s_min == 0) return;
    const std::chrono::duration<double> grace = limits_.grace;
    const std::chrono::duration<double> earned(static_cast<double>(bytes) /
                                               static_cast<double>(limits_.bytes_per_s_min));
    credit_ += std::chrono::duration_cast<Duration>(std::min(earned, grace)) - waited;
    credit_ = std::min(credit_, limits_.grace);
  }

 private:
  Limits limits_;
  Duration left_;
  Duration credit_;
};

}  // namespace sightline::http
