// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <utility>

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

  // Makes the share larger by `bytes`. False, and nothing changes: all together would be above the
  // maximum.
  [[nodiscard]] bool add(std::size_t& share, std::size_t bytes) {
    std::size_t held = held_.load(std::memory_order_relaxed);
    do {
      if (bytes > bytes_max_ - held) return false;
    } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    share += bytes;
    return true;
  }

  // Makes it smaller by as many, which it has.
  void remove(std::size_t& share, std::size_t bytes) {
    held_.fetch_sub(bytes, std::memory_order_relaxed);
    share -= bytes;
  }

  void release(std::size_t& share) {
    held_.fetch_sub(share, std::memory_order_relaxed);
    share = 0;
  }

  // Of all holders.
  [[nodiscard]] std::size_t held() const { return held_.load(std::memory_order_relaxed); }
  // What may still be added.
  [[nodiscard]] std::size_t room() const { return bytes_max_ - held(); }

 private:
  const std::size_t bytes_max_;
  std::atomic<std::size_t> held_ = 0;
};

// The share of one holder, given back at its end. Without a budget it only counts.
// Thread safety: none. The budget outlives it.
class HeldBytes {
 public:
  explicit HeldBytes(ByteBudget* budget) : budget_(budget) {}
  HeldBytes(HeldBytes&& other) noexcept
      : budget_(other.budget_), share_(std::exchange(other.share_, 0)) {}
  HeldBytes& operator=(HeldBytes&&) = delete;
  ~HeldBytes() { clear(); }
  [[nodiscard]] std::size_t bytes() const { return share_; }
  // What may be added.
  [[nodiscard]] std::size_t room() const {
    return budget_ != nullptr ? budget_->room() : std::numeric_limits<std::size_t>::max() - share_;
  }
  // False, and nothing changes: there is no room.
  [[nodiscard]] bool add(std::size_t bytes) {
    if (budget_ != nullptr) return budget_->add(share_, bytes);
    share_ += bytes;
    return true;
  }
  void remove(std::size_t bytes) {
    if (budget_ != nullptr) budget_->remove(share_, bytes);
    if (budget_ == nullptr) share_ -= bytes;
  }
  void clear() { remove(share_); }

 private:
  ByteBudget* budget_;
  std::size_t share_ = 0;
};

}  // namespace sightline
