// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/admin_port/admin_server.h"

#include "router/front/push/worker_lists.h"

namespace sightline::push {

// PUT /v1/workers: 200 {"verdict": "taken" or "same", "source", "revision", "generation", "digest",
// "count", "difference": {"added", "removed", "changed": [names], "kept": number}}; of a list that
// is not taken 409 {"error", "held": {…}}; of one that cannot be read 400 or 413.
admin_port::AdminResponse put_workers(WorkerLists& lists, const admin_port::AdminRequest& request);

// GET /v1/workers/list: {"source", "revision", "generation", "digest", "count", "pushed"}, the last
// as it was pushed, null if nothing was.
admin_port::AdminResponse get_worker_list(const WorkerLists& lists);

// "source", "revision", "generation", "digest", "count" of it, without the braces around; what a
// pushed list alone has is null where there is none.
std::string members_of(const lists::InForce& now);

}  // namespace sightline::push
