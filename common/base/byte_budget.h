// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstddef>

namespace sightline {

// Bytes that many holders may have together. Each holder keeps the count of its own share, which
// begins at 0 and which only these methods change.
// Thread safety: all methods from any thread, for one share from one thread at a time.
class ByteBudget {
 public:
  explicit ByteBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Makes the share `bytes` large, which is no less than it is. False: then all together would be
  // above the maximum, and the share is 0 now. That is one step: of holders that grow at the same
  // time only as many fail as must.
  [[nodiscard]] bool grow(std::size_t& share, std::size_t bytes) {
    std::size_t held = held_.load(std::memory_order_relaxed);
    std::size_t fitting = 0;
    do {
      fitting = bytes <= bytes_max_ - (held - share) ? bytes : 0;
    } while (!held_.compare_exchange_weak(held, held - share + fitting, std::memory_order_relaxed));
    share = fitting;
    return fitting == bytes;
  }

  void release(std::size_t& share) {
    held_.fetch_sub(share, std::memory_order_relaxed);
    share = 0;
  }

  // Of all holders.
  [[nodiscard]] std::size_t held() const { return held_.load(std::memory_order_relaxed); }

 private:
  const std::size_t bytes_max_;
  std::atomic<std::size_t> held_ = 0;
};

}  // namespace sightline
