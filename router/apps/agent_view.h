// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/result.h"

#include "router/replicas/agent/agent_streams.h"
#include "router/replicas/agent/rank_stream.h"
#include "router/workers/fleet/snapshot.h"

namespace sightline::apps {

// What an agent tells of its workers. All pure.

// GET /v1/workers of an agent: a JSON array, one object per worker in the order of the
// configuration.
std::string agent_workers_json(const fleet::FleetSnapshot& fleet,
                               std::span<const agent::StreamView> streams);

// The ranks that are to be read, each with why it may have no events.
std::vector<agent::WantedStream> wanted_streams(const fleet::FleetSnapshot& fleet);

// Done once every worker was asked, whatever it answered. The error names the first that was not.
Result<Done> check_asked(const fleet::FleetSnapshot& fleet);

}  // namespace sightline::apps
