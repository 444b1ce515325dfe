// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>

namespace sightline::fleet {

// Whether bytes of a worker's answers came lately. Whoever receives some raises it; each probe
// begins a period, and what was raised in the one before is remembered.
// Thread safety: raise() and the readers from any thread; begin_period() from one at a time. A
// raised sign is only read, so that threads share its cache line.
class LifeSign {
 public:
  void raise() {
    if (!raised_.load(std::memory_order_relaxed)) raised_.store(true, std::memory_order_relaxed);
    if (!moved_.load(std::memory_order_relaxed)) moved_.store(true, std::memory_order_relaxed);
  }
  // True if it was raised since this was called last. From one thread at a time.
  [[nodiscard]] bool take_moved() {
    return moved_.load(std::memory_order_relaxed) &&
           moved_.exchange(false, std::memory_order_relaxed);
  }

  // short_one: the period that ends was shorter than most, so the one before it counts as well.
  void begin_period(bool short_one) {
    const bool before = short_one && raised_before_.load(std::memory_order_relaxed);
    raised_before_.store(raised_.exchange(false, std::memory_order_relaxed) || before,
                         std::memory_order_relaxed);
  }
  // Since the last probe began.
  [[nodiscard]] bool raised() const { return raised_.load(std::memory_order_relaxed); }
  // In this period or the one before.
  [[nodiscard]] bool raised_lately() const {
    return raised() || raised_before_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> raised_ = false;
  std::atomic<bool> raised_before_ = false;
  std::atomic<bool> moved_ = false;
};

}  // namespace sightline::fleet
