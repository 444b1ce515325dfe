// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <utility>

namespace sightline {

// A small claim may take what a budget keeps for small requests; any other leaves it.
enum class Claim : std::uint8_t { Ordinary, Small };

// Of requests up to this size.
inline constexpr std::size_t kSmallBytesMax = std::size_t{1} << 20U;
constexpr Claim claim_of(std::size_t bytes) {
  return bytes > kSmallBytesMax ? Claim::Ordinary : Claim::Small;
}

// Bytes that many holders may have together. Each holder keeps the count of its own share, which
// begins at 0 and which only these methods change. What a budget holds is held by its parent too,
// and either may refuse it.
// Thread safety: all methods but set_reclaim() from any thread, for one share from one thread at a
// time. They take no lock.
class ByteBudget {
 public:
  struct Within {
    ByteBudget* parent = nullptr;          // outlives it; null: none
    std::size_t kept_for_small_bytes = 0;  // of bytes_max: only small claims take the last of it
    std::string_view limit = {};           // the setting behind bytes_max, as errors name it
  };

  explicit ByteBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  ByteBudget(std::size_t bytes_max, const Within& within)
      : within_(within), bytes_max_(bytes_max) {}

  // Makes the share `bytes` large, which is no less than it is. False: then all together would be
  // above the maximum, and the share is 0 now. Without a parent that is one step: of holders that
  // grow at the same time only as many fail as must.
  [[nodiscard]] bool grow(std::size_t& share, std::size_t bytes, Claim claim = Claim::Ordinary) {
    const bool fits = resize(share, bytes, claim);
    share = fits ? bytes : 0;
    return fits;
  }

  // Makes the share larger by `bytes`. False, and nothing changes: all together would be above the
  // maximum.
  [[nodiscard]] bool add(std::size_t& share, std::size_t bytes, Claim claim = Claim::Ordinary) {
    if (!resize(0, bytes, claim)) return false;
    share += bytes;
    return true;
  }

  // Makes it larger by `bytes` that are in memory already, whatever the maximum.
  void charge(std::size_t& share, std::size_t bytes) {
    for (ByteBudget* level = this; level != nullptr; level = level->within_.parent) {
      level->held_.fetch_add(bytes, std::memory_order_relaxed);
    }
    share += bytes;
  }

  // Makes it smaller by as many, which it has.
  void remove(std::size_t& share, std::size_t bytes) {
    give(bytes);
    share -= bytes;
  }

  void release(std::size_t& share) { remove(share, share); }

  // For a holder that keeps no count of its own, but gives back what it took.
  [[nodiscard]] bool take(std::size_t bytes, Claim claim = Claim::Ordinary) {
    return resize(0, bytes, claim);
  }
  void give(std::size_t bytes) {
    for (ByteBudget* level = this; level != nullptr; level = level->within_.parent) {
      level->held_.fetch_sub(bytes, std::memory_order_relaxed);
    }
  }

  // Of all holders.
  [[nodiscard]] std::size_t held() const { return held_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bytes_max() const { return bytes_max_.load(std::memory_order_relaxed); }
  // What may still be added, by this budget and its parents.
  [[nodiscard]] std::size_t room(Claim claim = Claim::Ordinary) const {
    std::size_t room = std::numeric_limits<std::size_t>::max();
    for (const ByteBudget* level = this; level != nullptr; level = level->within_.parent) {
      const std::size_t most = level->most_here(claim);
      room = std::min(room, most - std::min(most, level->held()));
    }
    return room;
  }
  // What one claim gets at most, when nobody else holds anything.
  [[nodiscard]] std::size_t most(Claim claim) const {
    std::size_t most = most_here(claim);
    if (within_.parent != nullptr) most = std::min(most, within_.parent->most(claim));
    return most;
  }
  // The same, but for the parents.
  [[nodiscard]] std::size_t most_here(Claim claim) const {
    const std::size_t kept = claim == Claim::Small ? 0 : within_.kept_for_small_bytes;
    const std::size_t most = bytes_max();
    return most - std::min(most, kept);
  }
  [[nodiscard]] const ByteBudget* parent() const { return within_.parent; }
  [[nodiscard]] std::string_view limit() const { return within_.limit; }
  // Claims that this budget itself had no room for.
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

  // What is held above stays; nothing is added until it is less.
  void set_bytes_max(std::size_t bytes_max) {
    bytes_max_.store(bytes_max, std::memory_order_relaxed);
  }
  // Called, on the claim's thread, before a parent's refusal counts: gives up to so many bytes of
  // others back that can be had again, and says whether there were any. Set before threads start.
  void set_reclaim(std::function<bool(std::size_t bytes)> reclaim) {
    reclaim_ = std::move(reclaim);
  }

 private:
  // False: nothing is left of `before`.
  bool resize(std::size_t before, std::size_t bytes, Claim claim) {
    if (!resize_here(before, bytes, claim)) {
      if (within_.parent != nullptr) within_.parent->give(before);
      return false;
    }
    if (within_.parent == nullptr || within_.parent->resize(before, bytes, claim)) return true;
    const bool may_fit = reclaim_ && bytes <= within_.parent->most(claim) && reclaim_(bytes);
    if (may_fit && within_.parent->resize(0, bytes, claim)) return true;
    held_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }

  bool resize_here(std::size_t before, std::size_t bytes, Claim claim) {
    const std::size_t most = most_here(claim);
    std::size_t held = held_.load(std::memory_order_relaxed);
    bool fits = false;
    std::size_t after = 0;
    do {
      const std::size_t others = held - before;
      fits = bytes <= before || (bytes <= most && others <= most - bytes);
      after = fits ? others + bytes : others;
    } while (!held_.compare_exchange_weak(held, after, std::memory_order_relaxed));
    if (!fits) refused_.fetch_add(1, std::memory_order_relaxed);
    return fits;
  }

  const Within within_{};
  std::atomic<std::size_t> bytes_max_;
  std::atomic<std::size_t> held_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::function<bool(std::size_t)> reclaim_;
};

// The share of one holder, given back at its end. Without a budget it only counts.
// Thread safety: none. The budget outlives it.
class HeldBytes {
 public:
  explicit HeldBytes(ByteBudget* budget, Claim claim = Claim::Ordinary)
      : budget_(budget), claim_(claim) {}
  HeldBytes(HeldBytes&& other) noexcept
      : budget_(other.budget_), claim_(other.claim_), share_(std::exchange(other.share_, 0)) {}
  HeldBytes& operator=(HeldBytes&&) = delete;
  ~HeldBytes() { clear(); }
  [[nodiscard]] ByteBudget* budget() const { return budget_; }
  [[nodiscard]] Claim claim() const { return claim_; }
  [[nodiscard]] std::size_t bytes() const { return share_; }
  // What may be added.
  [[nodiscard]] std::size_t room() const {
    return budget_ != nullptr ? budget_->room(claim_)
                              : std::numeric_limits<std::size_t>::max() - share_;
  }
  // False, and nothing changes: there is no room.
  [[nodiscard]] bool add(std::size_t bytes) {
    if (budget_ != nullptr) return budget_->add(share_, bytes, claim_);
    share_ += bytes;
    return true;
  }
  // Bytes that are in memory already, whatever the room.
  void charge(std::size_t bytes) {
    if (budget_ != nullptr) return budget_->charge(share_, bytes);
    share_ += bytes;
  }
  void remove(std::size_t bytes) {
    if (budget_ != nullptr) budget_->remove(share_, bytes);
    if (budget_ == nullptr) share_ -= bytes;
  }
  void clear() { remove(share_); }

 private:
  ByteBudget* budget_;
  Claim claim_;
  std::size_t share_ = 0;
};

}  // namespace sightline
