// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/audit/judge.h"

namespace sightline::audit {
namespace {

// All but one block, or half of them.
bool was_mostly_kept(const Claim& claim) {
  const std::size_t missing = claim.blocks.size() - claim.reused_blocks;
  return missing <= 1 || missing <= claim.reused_blocks;
}

}  // namespace

std::string_view name_of(OverCause cause) {
  switch (cause) {
    case OverCause::Removed:
      return "removed";
    case OverCause::Unknown:
      return "unknown";
    case OverCause::NotReused:
      return "not_reused";
    case OverCause::Unexplained:
      return "unexplained";
  }
  return "";
}

bool Judge::Standing::doubts_replay(Instant now) const {
  if (!relearned) return false;
  const bool kept_since = agreed && *agreed > *relearned;
  return !kept_since || now - *relearned < kReplayTrustedAfter;
}

void Judge::agreed(EngineId engine, Instant answered) {
  Standing& standing = standings_[engine];
  standing.agreed = answered;
  standing.holds_more = false;
}

Verdict Judge::over(const Claim& claim, Instant now) {
  Standing& standing = standings_[claim.engine];
  // Decided by what has been forgotten since: it says nothing about what was learned anew.
  if (standing.relearned && claim.decided <= *standing.relearned) {
    return {.cause = OverCause::Removed};
  }
  const auto withdrawn = journal_.withdrawn_since(claim.removals, claim.engine, claim.blocks);
  if (!withdrawn) return {.cause = OverCause::Unknown};
  if (*withdrawn) return {.cause = OverCause::Removed};
  const bool mostly_kept = was_mostly_kept(claim);
  if (standing.holds_more && mostly_kept) return {.cause = OverCause::NotReused};
  const bool row_goes_on = !standing.agreed || *standing.agreed < standing.struck;
  standing.strikes = row_goes_on ? standing.strikes + 1 : 1;
  standing.struck = claim.answered;
  Verdict verdict{.cause = OverCause::Unexplained, .strikes = standing.strikes};
  if (standing.strikes < kStrikesMax) return verdict;
  standing.strikes = 0;
  const bool doubts_replay = standing.doubts_replay(now);
  if (doubts_replay && mostly_kept) {
    standing.holds_more = true;
    verdict.cause = OverCause::NotReused;
    return verdict;
  }
  verdict.relearn = doubts_replay ? Relearn::FromNewEvents : Relearn::FromReplay;
  standing.relearned = now;
  return verdict;
}

}  // namespace sightline::audit
