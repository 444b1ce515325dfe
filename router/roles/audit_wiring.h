// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "router/cache/audit/audit.h"
#include "router/cache/audit/room_watch.h"
#include "router/cache/index/exact_index.h"
#include "router/cache/index/prefix_index.h"
#include "router/roles/feeds.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::roles {

// The objects that the audit asks. All outlive it.
struct AuditSources {
  const Feeds& feeds;
  const fleet::Fleet& fleet;
  // What the index holds of each cache.
  const index::IndexStatistics& index;
  // The removals that explain wrong predictions.
  const index::RemovalJournal& journal;
};

// The objects that watch over the room in the index. All outlive them.
struct RoomSources {
  const Feeds& feeds;
  index::ExactIndex& index;
};

// These connect the audit to the feeds, the fleet and the index.
// For predictions: facts of the feeds, blocks and removals of the index, and the request to resync.
audit::Deps audit_wiring(const AuditSources& sources);
// For a full index: the limits of the caches, and the request to load a cache again.
audit::RoomWatch::Deps room_wiring(const RoomSources& sources);

}  // namespace sightline::roles
