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

// A data-parallel rank, named alike in every router.
struct RankName {
  std::string worker;
  std::uint32_t rank = 0;  // as the engine counts

  auto operator<=>(const RankName&) const = default;
};

// The most that one request books, in tokens and in blocks: the longest prompt of any model that is
// known. A caller that names more keeps no worker from others for longer.
inline constexpr std::uint64_t kBookedMax = 1ULL << 22U;

// Work that one request brings to a rank: what of its prompt is not expected in the cache.
// Blocks that are reused cost neither computing nor memory, and requests that share them would
// else count them many times.
struct Booking {
  std::uint64_t prefill_tokens = 0;  // weigh until the first token
  std::uint64_t blocks = 0;          // the same in KV blocks: weigh from the first token on
  std::uint32_t block_size = 1;      // tokens

  [[nodiscard]] double prefill_blocks() const {
    return static_cast<double>(prefill_tokens) / block_size;
  }
  // The same, with at most kBookedMax tokens and blocks and at least one token a block.
  [[nodiscard]] Booking bounded() const {
    return {.prefill_tokens = std::min(prefill_tokens, kBookedMax),
            .blocks = std::min(blocks, kBookedMax),
            .block_size = std::max(block_size, 1U)};
  }
};

// Of the loads that others tell.
template <class Amount>
constexpr Amount saturating_sum(Amount a, Amount b) {
  return a > std::numeric_limits<Amount>::max() - b ? std::numeric_limits<Amount>::max()
                                                    : static_cast<Amount>(a + b);
}

// Work booked on a rank at one moment.
struct Load {
  std::uint32_t in_flight = 0;       // requests
  std::uint64_t prefill_tokens = 0;  // of requests without a first token yet
  std::uint64_t blocks = 0;          // of requests that decode
  double recent_prefill_blocks = 0;  // computed lately, halved every kRecentHalfLife

  Load& operator+=(const Load& more) {
    in_flight = saturating_sum(in_flight, more.in_flight);
    prefill_tokens = saturating_sum(prefill_tokens, more.prefill_tokens);
    blocks = saturating_sum(blocks, more.blocks);
    recent_prefill_blocks += more.recent_prefill_blocks;
    return *this;
  }
  bool operator==(const Load&) const = default;
};

inline constexpr Duration kRecentHalfLife = std::chrono::seconds(30);

// Work that counts less the longer ago it was. Thread safety: none.
class RecentWork {
 public:
  RecentWork() = default;
  RecentWork(double blocks, Instant now) : blocks_(blocks), since_(now) {}

  [[nodiscard]] double at(Instant now) const {
    if (now <= since_ || blocks_ == 0) return blocks_;
    return blocks_ * std::exp2(-std::chrono::duration<double>(now - since_) /
                               std::chrono::duration<double>(kRecentHalfLife));
  }
  void add(double blocks, Instant now) { *this = {at(now) + blocks, now}; }

 private:
  double blocks_ = 0;
  Instant since_{};
};

// Of a book, never used again in it.
using BookingId = StrongId<struct BookingIdTag, std::uint64_t>;

// One step in the life of a booking: reserved; perhaps its first token; ended, exactly once.
struct LoadChange {
  enum class Step : std::uint8_t { Reserved, FirstToken, Ended };

  const RankName& rank;  // lives as long as the call
  BookingId id;
  Step step = Step::Reserved;
  Booking booking;               // the same at each step
  bool had_first_token = false;  // Ended: after its first token
};

}  // namespace sightline::fleet
