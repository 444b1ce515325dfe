// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "common/base/result.h"

namespace sightline::family {

struct ResolvedEndpoint {
  std::string endpoint;
  bool bind = false;  // the engine connects: we bind

  bool operator==(const ResolvedEndpoint&) const = default;
};

// The PUB endpoint as the engine has it -> what we do. Engines bind only if the endpoint contains
// "*" or "::" or starts with ipc:// or inproc:// (vLLM 0.32); then we connect to the worker's host.
// Otherwise it connects, and we bind that port on all addresses (its host name is ours). Errors:
// Corrupt.
Result<ResolvedEndpoint> resolve_events_endpoint(std::string_view engine_side,
                                                 std::string_view worker_host);

// The replay socket always binds on the engine's side, so a wildcard host becomes the worker's.
Result<std::string> resolve_replay_endpoint(std::string_view engine_side,
                                            std::string_view worker_host);

}  // namespace sightline::family
