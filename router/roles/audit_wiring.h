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

// Whom the audit asks. All outlive it.
struct AuditSources {
  const Feeds& feeds;
  const fleet::Fleet& fleet;
  const index::IndexStatistics& index;
  const index::RemovalJournal& journal;
};

// What sees to the room in the index. All outlive it.
struct RoomSources {
  const Feeds& feeds;
  index::ExactIndex& index;
};

// Joins the audit to the feeds, the fleet and the index.
audit::Dependencies audit_wiring(const AuditSources& sources);
audit::RoomWatch::Dependencies room_wiring(const RoomSources& sources);

}  // namespace sightline::roles
