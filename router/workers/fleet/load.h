// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>

#include "common/base/clock.h"
#include "common/base/ids.h"

namespace sightline::fleet {

// A data-parallel rank. All routers name it alike.
struct RankName {
  std::string worker;
  // As the engine numbers it.
  std::uint32_t rank = 0;

  auto operator<=>(const RankName&) const = default;
};

// The most tokens and the most blocks that one request books. It is the longest prompt of any known
// model. A caller that names more does not block a worker for longer.
inline constexpr std::uint64_t kBookedMax = 1ULL << 22U;

// The work of one request on a rank: the part of its prompt outside of the cache, as expected.
// Reused blocks cost no computation and no memory. Requests that share them would count them many
// times.
struct Booking {
  // Count until the first token.
  std::uint64_t prefill_tokens = 0;
  // The same in KV blocks, count from the first token on.
  std::uint64_t blocks = 0;
  // Tokens.
  std::uint32_t block_size = 1;

  // The prefill in blocks.
  [[nodiscard]] double prefill_blocks() const {
    return static_cast<double>(prefill_tokens) / block_size;
  }
  // The same with at most kBookedMax tokens and blocks, and at least one token in a block.
  [[nodiscard]] Booking bounded() const {
    return {.prefill_tokens = std::min(prefill_tokens, kBookedMax),
            .blocks = std::min(blocks, kBookedMax),
            .block_size = std::max(block_size, 1U)};
  }
};

// A sum that stops at the maximum, because loads of other routers are not checked.
template <class Amount>
constexpr Amount saturating_sum(Amount a, Amount b) {
  return a > std::numeric_limits<Amount>::max() - b ? std::numeric_limits<Amount>::max()
                                                    : static_cast<Amount>(a + b);
}

// The booked work of a rank at one moment.
struct Load {
  // Requests.
  std::uint32_t in_flight = 0;
  // Of requests without a first token.
  std::uint64_t prefill_tokens = 0;
  // Of requests in decode.
  std::uint64_t blocks = 0;
  // Computed lately, halves in kRecentHalfLife.
  double recent_prefill_blocks = 0;

  Load& operator+=(const Load& more) {
    in_flight = saturating_sum(in_flight, more.in_flight);
    prefill_tokens = saturating_sum(prefill_tokens, more.prefill_tokens);
    blocks = saturating_sum(blocks, more.blocks);
    recent_prefill_blocks += more.recent_prefill_blocks;
    return *this;
  }
  bool operator==(const Load&) const = default;
};

// The half-life in Load::recent_prefill_blocks.
inline constexpr Duration kRecentHalfLife = std::chrono::seconds(30);

// Work that counts less with its age.
// Thread safety: one thread at a time.
class RecentWork {
 public:
  // No work.
  RecentWork() = default;
  RecentWork(double blocks, Instant now) : blocks_(blocks), since_(now) {}

  // The work that counts at this time. A time before the last addition counts as that addition.
  [[nodiscard]] double at(Instant now) const {
    if (now <= since_ || blocks_ == 0) return blocks_;
    return blocks_ * std::exp2(-std::chrono::duration<double>(now - since_) /
                               std::chrono::duration<double>(kRecentHalfLife));
  }
  // Adds work that was done now.
  void add(double blocks, Instant now) { *this = {at(now) + blocks, now}; }

 private:
  double blocks_ = 0;
  Instant since_{};
};

// Identifies a booking of a book. It is never used again in that book.
using BookingId = StrongId<struct BookingIdTag, std::uint64_t>;

// One step of a booking: reserved, perhaps its first token, and ended exactly once.
struct LoadChange {
  enum class Step : std::uint8_t { Reserved, FirstToken, Ended };

  // Valid during the call.
  const RankName& rank;
  BookingId id;
  Step step = Step::Reserved;
  // The same at each step.
  Booking booking;
  // Of Ended: it had its first token.
  bool had_first_token = false;
};

}  // namespace sightline::fleet
