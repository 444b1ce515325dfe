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

// Removals are announced after the step that made them: vLLM 0.32 publishes within the step, its
// publisher thread and the network add a few milliseconds. What was removed before the rank
// looked up its cache is known to us this long after the answer.
inline constexpr std::chrono::milliseconds kAnnouncementDelay{250};
// Wrong claims in a row that nothing explains until a worker's blocks are forgotten: a single one
// may be an announcement that took longer.
inline constexpr std::uint32_t kStrikesMax = 2;
// A replay brings back all that the rank ever announced; if its blocks are wrong again this
// soon, or before any promise was kept, the announcements themselves are what is wrong, and only
// new ones are believed.
inline constexpr std::chrono::seconds kReplayTrustedAfter{60};
// A rank that was learned anew is not learned anew again before this time, which doubles with
// each time that follows; after a rest of twice the longest one it begins again. What is wrong by
// the rank's nature comes back each time, and forgetting loses what is right.
inline constexpr std::chrono::seconds kRelearnPauseMin{10};
inline constexpr std::chrono::seconds kRelearnPauseMax{640};

// Blocks that a rank was expected to reuse for a request, and what it says it did reuse.
struct Claim {
  CacheId cache;
  std::size_t reused_blocks = 0;
  std::vector<keys::BlockKey> missing;  // expected to be reused after those, at least one
  std::uint64_t row = 0;                // as Judge::row() said when the answer came
  std::uint64_t removals = 0;           // the journal's position before the index was asked
  Instant decided{};                    // when the index was asked
  Instant answered{};
};

// Why a rank reused less than was expected.
enum class OverCause : std::uint8_t {
  Removed,      // announced since the decision: evicted, cleared, restarted
  Unknown,      // the journal does not reach back that far
  NotReused,    // held, as learning anew has shown, but the rank does not reuse all it holds
  UpperBound,   // cache groups that do not count may lack what the others hold
  NotJudged,    // it was not known in time whether all of its announcements were applied
  Unexplained,  // the index claimed what the rank had not
};
std::string_view name_of(OverCause cause);

// Postponed: it would be due, but the rank was learned anew too lately.
enum class Relearn : std::uint8_t { No, Postponed, FromReplay, FromNewEvents };
constexpr bool is_due(Relearn relearn) {
  return relearn == Relearn::FromReplay || relearn == Relearn::FromNewEvents;
}

struct Judgement {
  OverCause cause = OverCause::Unexplained;
  std::uint32_t strikes = 0;  // unexplained claims of this rank in a row, this one included
  Relearn relearn = Relearn::No;
};

// Decides from wrong claims when a rank's blocks have to be forgotten and learned anew. Where a
// replay brought the same errors, but most of each claim was kept, forgetting would lose more than
// it heals: such ranks reuse less than they hold (vLLM 0.32 with EAGLE or MTP computes the last
// block of every hit again).
// Thread safety: none. The journal outlives it.
class Judge {
 public:
  explicit Judge(const index::RemovalJournal& journal) : journal_(journal) {}

  // The rank reused at least what was expected of it, which was something: a row ends.
  void agreed(CacheId cache, Instant answered);
  // Two claims of a rank with the same row have no kept promise between them.
  [[nodiscard]] std::uint64_t row(CacheId cache) const;
  // The rank reused less. Call it once all is applied that the rank had announced
  // kAnnouncementDelay after its answer.
  Judgement over(const Claim& claim, Instant now);
  // The index claims more blocks of the rank than it has room for.
  Relearn overfull(CacheId cache, Instant now);
  // The rank left.
  void forget(CacheId cache) { standings_.erase(cache); }

 private:
  struct Record {
    std::uint32_t strikes = 0;
    std::uint64_t row = 0;         // promises kept
    std::uint64_t struck_row = 0;  // of the last strike
    std::optional<Instant> agreed;
    std::optional<Instant> relearned;
    Duration pause{};         // after that
    bool holds_more = false;  // than it reuses, by its nature

    // What was learned last has proved wrong again.
    [[nodiscard]] bool doubts_replay(Instant now) const;
    Relearn relearn(Instant now);
  };

  const index::RemovalJournal& journal_;
  std::unordered_map<CacheId, Record> standings_;
};

}  // namespace sightline::audit
