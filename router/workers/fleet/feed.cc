// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/feed.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sightline::fleet {
namespace {

std::vector<FoundRank> with_events(const std::vector<FoundRank>& ranks) {
  std::vector<FoundRank> known;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(known),
               [](const FoundRank& rank) { return rank.events.has_value(); });
  return known;
}

// Returns false if nothing changed.
bool set_health(Feed& feed, std::string_view unverified, std::string_view incomplete) {
  const bool is_known = feed.unverified == unverified && feed.incomplete == incomplete;
  feed.unverified = unverified;
  feed.incomplete = incomplete;
  return !is_known;
}

// Returns why blocks are missing for good, from before the first received message or from lost
// ones. Without a replay endpoint their number is not known. A replay that answers returns
// everything there is.
std::string_view why_incomplete(const operations::CacheFacts& facts) {
  if (!facts.missing.forgotten) return {};
  if (facts.replay_silent) {
    return "its replay endpoint does not answer: earlier blocks are unknown";
  }
  if (!facts.sequence || facts.has_replay) return {};
  return "no replay endpoint: blocks from before the router connected, or from lost events, are "
         "unknown";
}

// Returns the block size by the events. Nothing: no event has carried one.
std::optional<AnnouncedBlockSize> announced_by(const operations::CacheFacts& facts) {
  const auto tokens = facts.block_size_conflict ? facts.block_size_conflict : facts.block_size;
  if (!facts.sequence || tokens.value_or(0) == 0) return std::nullopt;
  return AnnouncedBlockSize{*tokens, facts.block_size_conflict.has_value()};
}

}  // namespace

bool same_events(const std::vector<FoundRank>& a, const std::vector<FoundRank>& b) {
  const std::vector<FoundRank> known = with_events(a);
  if (known != with_events(b)) return false;
  // Between one rank and several, the same events are assigned in another way.
  return known.empty() || (a.size() > 1) == (b.size() > 1);
}

FeedNews take_facts(Feed& feed, const operations::CacheFacts& facts) {
  FeedNews news;
  news.health = set_health(feed, reason_of(facts), why_incomplete(facts));
  news.health |= std::exchange(feed.draining, facts.draining) != facts.draining;
  const auto announced = announced_by(facts);
  // Verified without any message: this engine has announced nothing.
  const bool is_void = !facts.sequence && facts.health == operations::FeedHealth::Verified;
  if (!announced && !is_void) return news;
  const AnnouncedBlockSize latest = announced.value_or(AnnouncedBlockSize{});
  news.block_size = feed.block_size != latest;
  feed.block_size = latest;
  return news;
}

bool refuse(Feed& feed, std::string_view reason) {
  return set_health(feed, "its KV events cannot be read: " + std::string(reason), {});
}

}  // namespace sightline::fleet
