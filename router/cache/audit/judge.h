// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"

#include "router/cache/index/removal_journal.h"
#include "router/cache/keys/block_key.h"

namespace sightline::audit {

// The router knows this long after an answer what the rank had removed before it looked up its
// cache. Engines announce removals after the step that made them. vLLM 0.32 publishes within the
// step. Its publisher thread and the network add a few milliseconds.
inline constexpr std::chrono::milliseconds kAnnouncementDelay{250};
// After so many unexplained wrong claims in a row, a rank's blocks are dropped. A single one may be
// an announcement that took longer.
inline constexpr std::uint32_t kStrikesMax = 2;
// A replay brings all that the rank ever announced. Its blocks may be wrong again within this time,
// or before any prediction was confirmed. Then the announcements themselves are wrong, and only new
// ones count.
inline constexpr std::chrono::seconds kReplayTrustedAfter{60};
// A rank is not resynced again before this pause has passed. The pause doubles with each resync.
// After twice the longest pause without a resync, it begins with the shortest again. An error from
// the rank's nature returns each time, and a resync also loses blocks that are right.
inline constexpr std::chrono::seconds kRelearnPauseMin{10};
inline constexpr std::chrono::seconds kRelearnPauseMax{640};

// The blocks that a rank was expected to reuse, and what it reported.
struct Claim {
  CacheId cache;
  // Blocks that the rank reused, by its report.
  std::size_t reused_blocks = 0;
  // The other expected blocks, which follow in the prompt. At least one.
  std::vector<keys::BlockKey> missing;
  std::uint64_t row = 0;  // Judge::row() when the answer came.
  // The journal's position before the index was asked.
  std::uint64_t removals = 0;
  // When the index was asked, and when the answer came.
  Instant decided{};
  Instant answered{};
};

// Why a rank reused less than expected.
enum class OverCause : std::uint8_t {
  Removed,      // Removed since the decision: evicted, cleared, restarted.
  Unknown,      // The journal does not reach back to the decision.
  NotReused,    // Held, as a resync has shown, but the rank does not reuse all it holds.
  UpperBound,   // The claims are an upper bound: CacheFacts::upper_bound.
  NotJudged,    // It was not known in time whether all announcements were applied.
  Unexplained,  // The index claimed blocks that the rank did not have.
};
// Returns the value of the label `cause`.
std::string_view name_of(OverCause cause);

// Whether a rank's blocks are loaded again. Postponed: the last resync is too recent.
enum class Relearn : std::uint8_t { No, Postponed, FromReplay, FromNewEvents };
// Returns whether the blocks are loaded again.
constexpr bool is_due(Relearn relearn) {
  return relearn == Relearn::FromReplay || relearn == Relearn::FromNewEvents;
}

// The verdict about one claim.
struct Judgement {
  OverCause cause = OverCause::Unexplained;
  std::uint32_t strikes = 0;  // unexplained claims of this rank in a row, this one included
  Relearn relearn = Relearn::No;
};

// Decides from wrong claims when a rank's blocks are dropped and loaded again. A replay may have
// brought the same errors while most of each claim was right. Another resync would then lose more
// than it repairs, because the rank reuses less than it holds. For example, vLLM 0.32 with EAGLE or
// MTP computes the last block of every hit again.
// Thread safety: one thread at a time. The journal outlives it.
class Judge {
 public:
  explicit Judge(const index::RemovalJournal& journal) : journal_(journal) {}

  // The rank reused at least the expected tokens, and these were more than zero. This ends a row of
  // strikes.
  void agreed(CacheId cache, Instant answered);
  // Returns a number that counts the confirmed predictions of a rank. Two claims with the same
  // number have no confirmed prediction between them.
  [[nodiscard]] std::uint64_t row(CacheId cache) const;
  // Judges a claim of which the rank reused less. Call it when everything is applied that the rank
  // had announced kAnnouncementDelay after its answer.
  Judgement over(const Claim& claim, Instant now);
  // The index claims more blocks of the rank than the rank has.
  Relearn overfull(CacheId cache, Instant now);
  // The rank left.
  void forget(CacheId cache) { standings_.erase(cache); }

 private:
  struct Record {
    std::uint32_t strikes = 0;
    std::uint64_t row = 0;         // confirmed predictions.
    std::uint64_t struck_row = 0;  // value of row at the last strike.
    std::optional<Instant> agreed;
    std::optional<Instant> relearned;
    // The pause after the last resync.
    Duration pause{};
    // The rank holds more than it reuses, by its nature.
    bool holds_more = false;

    // Returns whether the last resync has proved wrong again.
    [[nodiscard]] bool doubts_replay(Instant now) const;
    // Decides how to resync the rank, or that the last resync is too recent.
    Relearn relearn(Instant now);
  };

  const index::RemovalJournal& journal_;
  std::unordered_map<CacheId, Record> standings_;
};

}  // namespace sightline::audit
