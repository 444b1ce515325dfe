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

// A Small claim may use the bytes that a budget reserves for small requests. An Ordinary claim may
// not.
enum class Claim : std::uint8_t { Ordinary, Small };

// Requests up to this size are Small.
inline constexpr std::size_t kSmallBytesMax = std::size_t{1} << 20U;
constexpr Claim claim_of(std::size_t bytes) {
  return bytes > kSmallBytesMax ? Claim::Ordinary : Claim::Small;
}

// A limit on the bytes that many holders have together. Each holder keeps the count of its share,
// which starts at 0 and which only these methods change. A budget's bytes also count in its parent.
// Either may refuse a claim.
// Thread safety: all methods but set_reclaim() from any thread, but one share from one thread at a
// time. They take no lock.
class ByteBudget {
 public:
  struct Within {
    ByteBudget* parent = nullptr;          // outlives this budget. Null: no parent
    std::size_t kept_for_small_bytes = 0;  // the last of bytes_max, for Small claims only
    std::string_view limit = {};           // the setting behind bytes_max
  };

  explicit ByteBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  ByteBudget(std::size_t bytes_max, const Within& within)
      : within_(within), bytes_max_(bytes_max) {}

  // Sets the share to `bytes`, which is at least its present size. Returns false if the total would
  // exceed the maximum. The share is 0 then. Without a parent this is one atomic step: of holders
  // that grow at the same time, no more fail than must.
  [[nodiscard]] bool grow(std::size_t& share, std::size_t bytes, Claim claim = Claim::Ordinary) {
    const bool fits = resize(share, bytes, claim);
    share = fits ? bytes : 0;
    return fits;
  }

  // Adds `bytes` to the share. Returns false, and changes nothing, if the total would exceed the
  // maximum.
  [[nodiscard]] bool add(std::size_t& share, std::size_t bytes, Claim claim = Claim::Ordinary) {
    if (!resize(0, bytes, claim)) return false;
    share += bytes;
    return true;
  }
  // Adds `bytes` that are in memory already. Ignores the maximum.
  void charge(std::size_t& share, std::size_t bytes) {
    for (ByteBudget* level = this; level != nullptr; level = level->within_.parent) {
      level->held_.fetch_add(bytes, std::memory_order_relaxed);
    }
    share += bytes;
  }

  // Takes `bytes` off the share, which has at least as many.
  void remove(std::size_t& share, std::size_t bytes) {
    give(bytes);
    share -= bytes;
  }
  void release(std::size_t& share) { remove(share, share); }

  // take() and give() are for a holder that keeps no count, but gives back exactly what it took.
  [[nodiscard]] bool take(std::size_t bytes, Claim claim = Claim::Ordinary) {
    return resize(0, bytes, claim);
  }
  void give(std::size_t bytes) {
    for (ByteBudget* level = this; level != nullptr; level = level->within_.parent) {
      level->held_.fetch_sub(bytes, std::memory_order_relaxed);
    }
  }

  // The bytes of all holders.
  [[nodiscard]] std::size_t held() const { return held_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t bytes_max() const { return bytes_max_.load(std::memory_order_relaxed); }
  // The bytes that this budget and its parents can still add.
  [[nodiscard]] std::size_t room(Claim claim = Claim::Ordinary) const {
    std::size_t room = std::numeric_limits<std::size_t>::max();
    for (const ByteBudget* level = this; level != nullptr; level = level->within_.parent) {
      const std::size_t most = level->most_here(claim);
      room = std::min(room, most - std::min(most, level->held()));
    }
    return room;
  }
  // The most that one claim can get while all other holders hold 0 bytes.
  [[nodiscard]] std::size_t most(Claim claim) const {
    std::size_t most = most_here(claim);
    if (within_.parent != nullptr) most = std::min(most, within_.parent->most(claim));
    return most;
  }
  // Like most(), but without the limits of the parents.
  [[nodiscard]] std::size_t most_here(Claim claim) const {
    const std::size_t kept = claim == Claim::Small ? 0 : within_.kept_for_small_bytes;
    const std::size_t most = bytes_max();
    return most - std::min(most, kept);
  }
  [[nodiscard]] const ByteBudget* parent() const { return within_.parent; }
  [[nodiscard]] std::string_view limit() const { return within_.limit; }
  // The claims that this budget, not a parent, refused.
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

  // May be below held(): those bytes stay, and the budget refuses claims until fewer are held.
  void set_bytes_max(std::size_t bytes_max) {
    bytes_max_.store(bytes_max, std::memory_order_relaxed);
  }
  // `reclaim` runs on the claim's thread when a parent refuses a claim that it could ever hold. It
  // frees up to `bytes` of other holders that can be had again, for example cache entries. It
  // returns whether it freed any. Call this before threads start.
  void set_reclaim(std::function<bool(std::size_t bytes)> reclaim) {
    reclaim_ = std::move(reclaim);
  }

 private:
  // Returns false if the claim fails. Then `before` is given back too.
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

// The share of one holder. The destructor gives it back. Without a budget (null) it only counts.
// Thread safety: one thread at a time. The budget outlives it.
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
  // The bytes that can still be added.
  [[nodiscard]] std::size_t room() const {
    return budget_ != nullptr ? budget_->room(claim_)
                              : std::numeric_limits<std::size_t>::max() - share_;
  }
  // Returns false, and changes nothing, if there is no room.
  [[nodiscard]] bool add(std::size_t bytes) {
    if (budget_ != nullptr) return budget_->add(share_, bytes, claim_);
    share_ += bytes;
    return true;
  }
  // Adds bytes that are in memory already. Ignores the limit.
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
