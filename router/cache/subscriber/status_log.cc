// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/status_log.h"

#include "common/base/log.h"

#include "router/cache/operations/facts.h"

namespace sightline::subscriber {

namespace {

using events::FeedStatus;
using operations::FeedHealth;

// Logs only the first of each kind, because a rank newer than this build repeats them.
void log_unknown(const FeedStatus& before, const FeedStatus& now) {
  const LogField cache{"engine", now.cache.value};
  const auto begins = [&](std::uint64_t events::NormaliserStatistics::*count) {
    return before.normaliser.*count == 0 && now.normaliser.*count > 0;
  };
  if (begins(&events::NormaliserStatistics::ignored_type)) {
    log(LogLevel::Warn,
        "KV events of an unknown type: update the router. Blocks that they remove stay in the "
        "index until the audit finds them",
        {cache});
  }
  if (begins(&events::NormaliserStatistics::unknown_field)) {
    log(LogLevel::Warn,
        "KV events with unknown fields: update the router. Blocks whose content may depend "
        "on these fields do not count",
        {cache});
  }
  if (begins(&events::NormaliserStatistics::groups_refused)) {
    log(LogLevel::Warn, "KV events name more cache groups than the limit", {cache});
  }
}

void log_missed(const FeedStatus& before, const FeedStatus& now) {
  const LogField cache{"engine", now.cache.value};
  if (before.overruns != now.overruns) {
    log(LogLevel::Warn, "closed the connection for KV events: a message exceeded the size limit",
        {cache});
  }
  if (now.facts.replay_silent && !before.facts.replay_silent) {
    log(LogLevel::Warn,
        "the replay endpoint of an engine does not answer: earlier blocks are unknown", {cache});
  }
}

std::optional<std::uint32_t> told_block_size(const FeedStatus& status) {
  const operations::CacheFacts& facts = status.facts;
  if (!facts.sequence) return std::nullopt;  // a configured size that no event has confirmed
  return facts.block_size_conflict ? facts.block_size_conflict : facts.block_size;
}

// Returns whether blocks that the rank stored earlier are known to be missing.
bool misses_past(const FeedStatus& status) {
  return status.facts.missing.forgotten && (status.facts.sequence || status.facts.replay_silent);
}

}  // namespace

void log_changes(const FeedStatus& before, const FeedStatus& now) {
  const LogField cache{"engine", now.cache.value};
  if (now.facts.block_size_conflict &&
      before.facts.block_size_conflict != now.facts.block_size_conflict) {
    log(LogLevel::Warn, "KV events contradict the block size: engine excluded from overlap",
        {cache, {"block_size", *now.facts.block_size_conflict}});
  }
  if (before.facts.block_size_conflict && !now.facts.block_size_conflict) {
    log(LogLevel::Warn, "KV events agree with the block size again", {cache});
  }
  // Only the first one: a broken publisher sends many.
  if (before.undecodable_messages == 0 && now.undecodable_messages > 0) {
    log(LogLevel::Warn, "cannot decode KV events: dropped the engine's blocks", {cache});
  }
  if (before.facts.health != now.facts.health) {
    const bool is_bad = now.facts.health == FeedHealth::Disconnected ||
                        now.facts.health == FeedHealth::AddressInUse ||
                        now.facts.health == FeedHealth::OtherRank;
    log(is_bad ? LogLevel::Warn : LogLevel::Info, "state of an engine's KV events",
        {cache,
         {"verified", now.facts.health == FeedHealth::Verified},
         {"reason", reason_of(now.facts.health)}});
  }
  if (before.stream.relearns != now.stream.relearns) {
    log(LogLevel::Warn, "dropped the blocks of an engine to load them again", {cache});
  }
  log_unknown(before, now);
  log_missed(before, now);
}

bool is_news(const FeedStatus& before, const FeedStatus& now) {
  // A restart may end a conflict with the size that was in conflict. So the size alone does not
  // show it.
  return before.facts.health != now.facts.health || misses_past(before) != misses_past(now) ||
         told_block_size(before) != told_block_size(now) ||
         before.facts.block_size_conflict != now.facts.block_size_conflict;
}

}  // namespace sightline::subscriber
