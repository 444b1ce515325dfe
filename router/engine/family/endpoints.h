// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"

namespace sightline::family {

// What the router does with an engine's endpoint.
struct ResolvedEndpoint {
  std::string endpoint;
  bool bind = false;  // the engine connects, so the router binds

  bool operator==(const ResolvedEndpoint&) const = default;
};

// Converts the PUB endpoint of an engine to what the router does. An engine binds only if its
// endpoint contains "*" or "::" or starts with ipc:// or inproc:// (vLLM 0.32). The router then
// connects to the worker's host. Otherwise the engine connects, and the router binds that port on
// all addresses, because the host name is the router's. Error: Corrupt.
Result<ResolvedEndpoint> resolve_events_endpoint(std::string_view engine_side,
                                                 std::string_view worker_host);

// Converts a replay endpoint. The engine's replay socket always binds, so a wildcard host becomes
// the worker's host. Error: Corrupt.
Result<std::string> resolve_replay_endpoint(std::string_view engine_side,
                                            std::string_view worker_host);

}  // namespace sightline::family
