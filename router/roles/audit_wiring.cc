// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/roles/audit_wiring.h"

#include <vector>

#include "router/cache/operations/facts.h"

namespace sightline::roles {

audit::Deps audit_wiring(const AuditSources& sources) {
  return {.journal = sources.journal,
          .index = sources.index,
          .facts = [sources](CacheId cache) { return sources.feeds.facts(cache); },
          .look = [sources](CacheId cache) { sources.feeds.look(cache); },
          .rooms =
              [sources] {
                std::vector<audit::CacheRoom> rooms;
                const auto snapshot = sources.fleet.snapshot();
                for (const auto& worker : snapshot->workers) {
                  for (const fleet::Rank& rank : worker->ranks) {
                    // Without a feed there are no claims to audit.
                    if (!rank.feed) continue;
                    rooms.push_back({rank.feed->cache, worker->spec.name, rank.cache_blocks()});
                  }
                }
                return rooms;
              },
          .relearn =
              [sources](CacheId cache, audit::Relearn how) {
                sources.feeds.relearn(cache, how == audit::Relearn::FromReplay);
              }};
}

audit::RoomWatch::Deps room_wiring(const RoomSources& sources) {
  return {.index = sources.index,
          .facts = [sources](CacheId cache) { return sources.feeds.facts(cache); },
          .set_bounds =
              [sources](const std::vector<audit::CacheRoom>& rooms) {
                std::vector<index::ExactIndex::Bound> bounds;
                for (const audit::CacheRoom& room : rooms) {
                  const auto facts = sources.feeds.facts(room.cache);
                  // Claims that are an upper bound may be more than the engine has, so they get no
                  // bound.
                  const bool is_bound = facts && !facts->upper_bound && room.blocks > 0;
                  if (is_bound) bounds.push_back({room.cache, room.blocks});
                }
                sources.index.set_bounds(bounds);
              },
          .take_gave_way = [sources] { return sources.index.take_gave_way(); },
          .ask_again = [sources](CacheId cache) { return sources.feeds.ask_again(cache); }};
}

}  // namespace sightline::roles
