// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>

namespace sightline {

// All times are in nanoseconds.
using Duration = std::chrono::nanoseconds;
// Monotonic time, for intervals and deadlines. It does not jump when an administrator sets the
// clock.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// Wall-clock time, to compare with timestamps from other machines. It may jump.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// The source of time. Code that decides by time takes a Clock as a parameter, and tests pass one
// that they move.
// Thread safety: all methods from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  // Both return the present time.
  [[nodiscard]] virtual Instant now() const = 0;
  [[nodiscard]] virtual WallTime wall() const = 0;
};

// The machine's clocks. The object lives as long as the process.
const Clock& system_clock();

}  // namespace sightline
