// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/audit/judge.h"

#include <algorithm>

namespace sightline::audit {
namespace {

// Returns whether at most one block, or at most half of the blocks, was missing.
bool was_mostly_kept(const Claim& claim) {
  return claim.missing.size() <= 1 || claim.missing.size() <= claim.reused_blocks;
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
    case OverCause::UpperBound:
      return "upper_bound";
    case OverCause::NotJudged:
      return "not_judged";
    case OverCause::Unexplained:
      return "unexplained";
  }
  return "";
}

bool Judge::Record::doubts_replay(Instant now) const {
  if (!relearned) return false;
  const bool kept_since = agreed && *agreed > *relearned;
  return !kept_since || now - *relearned < kReplayTrustedAfter;
}

Relearn Judge::Record::relearn(Instant now) {
  const bool is_first = !relearned || now - *relearned >= 2 * Duration(kRelearnPauseMax);
  if (!is_first && now - *relearned < pause) return Relearn::Postponed;
  const Relearn how = doubts_replay(now) ? Relearn::FromNewEvents : Relearn::FromReplay;
  pause = is_first ? Duration(kRelearnPauseMin) : std::min<Duration>(2 * pause, kRelearnPauseMax);
  relearned = now;
  strikes = 0;
  return how;
}

void Judge::agreed(CacheId cache, Instant answered) {
  Record& standing = standings_[cache];
  ++standing.row;
  standing.agreed = answered;
  standing.holds_more = false;
}

std::uint64_t Judge::row(CacheId cache) const {
  const auto found = standings_.find(cache);
  return found == standings_.end() ? 0 : found->second.row;
}

Judgement Judge::over(const Claim& claim, Instant now) {
  Record& standing = standings_[claim.cache];
  // The decision used blocks that have been dropped since. It says nothing about the blocks loaded
  // after that.
  if (standing.relearned && claim.decided <= *standing.relearned) {
    return {.cause = OverCause::Removed};
  }
  // Only the missing blocks are looked up: the rank had the blocks that it reused, so their removal
  // explains nothing.
  const auto withdrawn = journal_.withdrawn_since(claim.removals, claim.cache, claim.missing);
  if (!withdrawn) return {.cause = OverCause::Unknown};
  if (*withdrawn) return {.cause = OverCause::Removed};
  const bool mostly_kept = was_mostly_kept(claim);
  if (standing.holds_more && mostly_kept) return {.cause = OverCause::NotReused};
  const bool row_goes_on = standing.struck_row == claim.row;
  standing.strikes = row_goes_on ? standing.strikes + 1 : 1;
  standing.struck_row = claim.row;
  Judgement verdict{.cause = OverCause::Unexplained, .strikes = standing.strikes};
  if (standing.strikes < kStrikesMax) return verdict;
  if (standing.doubts_replay(now) && mostly_kept) {
    standing.strikes = 0;
    standing.holds_more = true;
    verdict.cause = OverCause::NotReused;
    return verdict;
  }
  verdict.relearn = standing.relearn(now);
  return verdict;
}

Relearn Judge::overfull(CacheId cache, Instant now) { return standings_[cache].relearn(now); }

}  // namespace sightline::audit
