// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "common/contract/worker_spec.h"

#include "router/workers/fleet/snapshot.h"

namespace sightline::fleet {

// Why not all is known of these workers that can be learnt now, with the first that lacks
// something; empty: it is. Each was asked at least once; of those that take requests, all that
// their engines announced is known, where somebody tells it. One that does not answer, or whose
// events nobody tells, has nothing to teach. Pure.
std::string why_not_learnt(const FleetSnapshot& fleet,
                           const std::vector<contract::WorkerSpec>& workers);

}  // namespace sightline::fleet
