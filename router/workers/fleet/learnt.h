// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "common/contract/worker_spec.h"

#include "router/workers/fleet/snapshot.h"

namespace sightline::fleet {

// Returns why the router has not received everything about these workers that it can receive now,
// with the first worker that lacks something. Empty: it has.
// It has if each worker was asked at least once, and if all announcements of the engines that take
// requests are applied. A worker that does not answer, or without known events, lacks nothing.
// Pure.
std::string why_not_learnt(const FleetSnapshot& fleet,
                           const std::vector<contract::WorkerSpec>& workers);

}  // namespace sightline::fleet
