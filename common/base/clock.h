// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>

namespace sightline {

using Duration = std::chrono::nanoseconds;
// Monotonic time, for intervals and deadlines.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// Wall-clock time, for comparing with timestamps made elsewhere.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// Source of time. Code that decides by time takes one of these, so that tests can move it.
// Thread safety: all methods may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;
  [[nodiscard]] virtual WallTime wall() const = 0;
};

// The machine's clocks. The returned object lives as long as the process.
const Clock& system_clock();

}  // namespace sightline
