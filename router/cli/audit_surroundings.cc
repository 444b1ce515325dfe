// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cli/audit_surroundings.h"

#include <utility>

#include "router/cache/operations/facts.h"

namespace sightline::cli {
namespace {

// Why blocks that an engine holds may be missing from the index.
std::string_view why_incomplete(const events::FeedStatus& status,
                                const index::IndexStatistics& index) {
  const operations::MissingBlocks& missing = status.facts.missing;
  if (index.refused(status.cache) > 0 || missing.no_room) return "index_full";
  if (missing.forgotten) return "forgotten";
  if (missing.unknown_content) return "unknown_content";
  return {};
}

audit::Heard heard_of(const events::FeedStatus& status) {
  return {.is_sound = status.facts.health == operations::FeedHealth::Verified,
          .is_upper_bound = status.facts.upper_bound,
          .caught_up = status.facts.caught_up};
}

// Blocks that the rank's cache has; 0: not known. Blocks of another size than those of its events
// are another number of them.
std::uint64_t room_of(const fleet::Rank& rank, const fleet::Feed& feed) {
  return rank.gpu_block_size == feed.block_size.tokens ? rank.gpu_blocks : 0;
}

std::vector<audit::Overfull> overfull(const AuditSources& sources) {
  std::vector<audit::Overfull> found;
  const auto snapshot = sources.fleet.snapshot();
  for (const auto& worker : snapshot->workers) {
    for (const fleet::Rank& rank : worker->ranks) {
      const std::uint64_t room = rank.feed ? room_of(rank, *rank.feed) : 0;
      if (room == 0) continue;
      const CacheId cache = rank.feed->cache;
      const std::uint64_t claimed = sources.index.blocks(cache);
      if (claimed <= room) continue;
      const auto status = sources.subscriber.status(cache);
      if (!status || !heard_of(*status).is_sound || status->facts.upper_bound) continue;
      found.push_back({cache, worker->name, claimed, room});
    }
  }
  return found;
}

}  // namespace

audit::Surroundings audit_surroundings(const AuditSources& sources) {
  return {.journal = sources.journal,
          .why_incomplete = [sources](CacheId engine) -> std::string_view {
            const auto status = sources.subscriber.status(engine);
            return status ? why_incomplete(*status, sources.index) : "forgotten";
          },
          .heard = [sources](CacheId engine) -> std::optional<audit::Heard> {
            const auto status = sources.subscriber.status(engine);
            if (!status) return std::nullopt;
            return heard_of(*status);
          },
          .look = [sources](CacheId engine) { sources.subscriber.look(engine); },
          .overfull = [sources] { return overfull(sources); },
          .relearn =
              [sources](CacheId engine, audit::Relearn how) {
                sources.subscriber.relearn(engine, how == audit::Relearn::FromReplay);
              }};
}

}  // namespace sightline::cli
