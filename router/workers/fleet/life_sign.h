// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>

namespace sightline::fleet {

// Whether bytes of a worker's answers arrived lately. Any thread that receives some raises it. Each
// probe begins a period, and the sign of the period before is kept.
// Thread safety: raise() and the reading methods from any thread, begin_period() from one thread at
// a time. A raised sign is only read, because a write would move its cache line between the
// threads.
class LifeSign {
 public:
  // Bytes of an answer arrived.
  void raise() {
    if (!raised_.load(std::memory_order_relaxed)) raised_.store(true, std::memory_order_relaxed);
    if (!moved_.load(std::memory_order_relaxed)) moved_.store(true, std::memory_order_relaxed);
  }
  // Returns whether it was raised since the last call. From one thread at a time.
  [[nodiscard]] bool take_moved() {
    return moved_.load(std::memory_order_relaxed) &&
           moved_.exchange(false, std::memory_order_relaxed);
  }

  // Begins a period. short_one: the ending period was shorter than usual, so the one before it
  // counts too.
  void begin_period(bool short_one) {
    const bool before = short_one && raised_before_.load(std::memory_order_relaxed);
    raised_before_.store(raised_.exchange(false, std::memory_order_relaxed) || before,
                         std::memory_order_relaxed);
  }
  // Raised in the present period, since the last probe began.
  [[nodiscard]] bool raised() const { return raised_.load(std::memory_order_relaxed); }
  // Raised in the present period or the one before.
  [[nodiscard]] bool raised_lately() const {
    return raised() || raised_before_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> raised_ = false;
  std::atomic<bool> raised_before_ = false;
  std::atomic<bool> moved_ = false;
};

}  // namespace sightline::fleet
