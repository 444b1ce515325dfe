// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/audit/judge.h"

namespace sightline::audit {

std::string_view name_of(OverCause cause) {
  switch (cause) {
    case OverCause::Removed:
      return "removed";
    case OverCause::Unknown:
      return "unknown";
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

Verdict Judge::over(const Claim& claim, Instant now) {
  Standing& standing = standings_[claim.engine];
  // Decided by what has been forgotten since: it says nothing about what was learned anew.
  if (standing.relearned && claim.decided <= *standing.relearned) {
    return {.cause = OverCause::Removed};
  }
  const auto withdrawn = journal_.withdrawn_since(claim.removals, claim.engine, claim.blocks);
  if (!withdrawn) return {.cause = OverCause::Unknown};
  if (*withdrawn) return {.cause = OverCause::Removed};
  const bool row_goes_on = !standing.agreed || *standing.agreed < standing.struck;
  standing.strikes = row_goes_on ? standing.strikes + 1 : 1;
  standing.struck = claim.answered;
  Verdict verdict{.cause = OverCause::Unexplained, .strikes = standing.strikes};
  if (standing.strikes < kStrikesMax) return verdict;
  verdict.relearn = standing.doubts_replay(now) ? Relearn::FromNewEvents : Relearn::FromReplay;
  standing.strikes = 0;
  standing.relearned = now;
  return verdict;
}

}  // namespace sightline::audit
