// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/admin_port/admin_server.h"

#include "router/front/push/worker_lists.h"

namespace sightline::push {

// PUT /v1/workers. The answer to an accepted list is 200 {"verdict": "taken" or "same", "source",
// "revision", "generation", "digest", "count", "difference": {"added", "removed", "changed":
// [names], "kept": number}}. A rejected list gets 409 {"error", "held": {…}}. An unreadable list
// gets 400 or 413.
admin_port::AdminResponse put_workers(WorkerLists& lists, const admin_port::AdminRequest& request);

// GET /v1/workers/list: {"source", "revision", "generation", "digest", "count", "pushed"}. "pushed"
// is the list as it was pushed, or null.
admin_port::AdminResponse get_worker_list(const WorkerLists& lists);

// Returns the members "source", "revision", "generation", "digest" and "count", without braces.
// Members that only a pushed list has are null for another list.
std::string members_of(const lists::InForce& now);

}  // namespace sightline::push
