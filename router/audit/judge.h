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

#include "router/index/removal_journal.h"
#include "router/keys/block_key.h"

namespace sightline::audit {

// Removals are announced after the step that made them: vLLM 0.32 publishes within the step, its
// publisher thread and the network add a few milliseconds. What was removed before the engine
// looked up its cache is known to us this long after the answer.
inline constexpr std::chrono::milliseconds kAnnouncementDelay{250};
// Wrong claims in a row that nothing explains until a worker's blocks are forgotten: a single one
// may be an announcement that took longer.
inline constexpr std::uint32_t kStrikesMax = 2;
// A replay brings back all that the engine ever announced; if its blocks are wrong again this
// soon, or before any promise was kept, the announcements themselves are what is wrong, and only
// new ones are believed.
inline constexpr std::chrono::seconds kReplayTrustedAfter{60};

// Blocks that an engine was expected to reuse for a request, and what it says it did reuse.
struct Claim {
  EngineId engine;
  std::vector<keys::BlockKey> blocks;  // expected to be reused, at least one
  std::size_t reused_blocks = 0;       // fewer than those
  std::uint64_t removals = 0;          // the journal's position before the index was asked
  Instant decided{};                   // when the index was asked
  Instant answered{};
};

// Why an engine reused less than was expected.
enum class OverCause : std::uint8_t {
  Removed,      // announced since the decision: evicted, cleared, restarted
  Unknown,      // the journal does not reach back that far
  NotReused,    // held, as learning anew has shown, but the engine does not reuse all it holds
  Unexplained,  // the index claimed what the engine had not
};
std::string_view name_of(OverCause cause);

enum class Relearn : std::uint8_t { No, FromReplay, FromNewEvents };

struct Verdict {
  OverCause cause = OverCause::Unexplained;
  std::uint32_t strikes = 0;  // unexplained claims of this engine in a row, this one included
  Relearn relearn = Relearn::No;
};

// Decides from wrong claims when an engine's blocks have to be forgotten and learned anew. Where a
// replay brought the same errors, but most of each claim was kept, forgetting would lose more than
// it heals: such engines reuse less than they hold (vLLM 0.32 with EAGLE or MTP computes the last
// block of every hit again).
// Thread safety: none. The journal outlives it.
class Judge {
 public:
  explicit Judge(const index::RemovalJournal& journal) : journal_(journal) {}

  // The engine reused at least what was expected of it, which was something: a row ends.
  void agreed(EngineId engine, Instant answered);
  // The engine reused less. Call it once kAnnouncementDelay has passed since the answer.
  Verdict over(const Claim& claim, Instant now);
  // The engine left.
  void forget(EngineId engine) { standings_.erase(engine); }

 private:
  struct Standing {
    std::uint32_t strikes = 0;
    Instant struck{};  // when the answer of the last strike came
    std::optional<Instant> agreed;
    std::optional<Instant> relearned;
    bool holds_more = false;  // than it reuses, by its nature

    // What was learned last has proved wrong again.
    [[nodiscard]] bool doubts_replay(Instant now) const;
  };

  const index::RemovalJournal& journal_;
  std::unordered_map<EngineId, Standing> standings_;
};

}  // namespace sightline::audit
