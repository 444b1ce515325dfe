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

// The agent's endpoints and checks about its workers. All functions are pure.

// The body of GET /v1/workers of an agent: a JSON array with one object for each worker, in the
// order of the configuration.
std::string agent_workers_json(const fleet::FleetSnapshot& fleet,
                               std::span<const agent::StreamView> streams);

// The ranks that the agent should read, each with the reason why it may have no events.
std::vector<agent::WantedStream> wanted_streams(const fleet::FleetSnapshot& fleet);

// Returns Done once every worker was asked, with any result. The error names the first other one.
Result<Done> check_asked(const fleet::FleetSnapshot& fleet);

}  // namespace sightline::apps
