// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/roles/audit_wiring.h"

#include <vector>

#include "router/cache/operations/facts.h"

namespace sightline::roles {

audit::Dependencies audit_wiring(const AuditSources& sources) {
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
                    const std::uint64_t blocks = rank.cache_blocks();
                    if (blocks > 0) rooms.push_back({rank.feed->cache, worker->spec.name, blocks});
                  }
                }
                return rooms;
              },
          .relearn =
              [sources](CacheId cache, audit::Relearn how) {
                sources.feeds.relearn(cache, how == audit::Relearn::FromReplay);
              }};
}

}  // namespace sightline::roles
