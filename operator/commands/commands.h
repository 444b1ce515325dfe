// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/result.h"

#include "operator/agreement/agreement.h"
#include "operator/crd/spec.h"

// How an engine is started so that it agrees with the frontends and routers of its revision.
namespace sightline::commands {

// Ports of a worker's pod. Ranks r of an engine take r above each; the two ranges are disjoint for
// the 64 ranks that there may be.
inline constexpr std::int64_t kEnginePort = 8000;
inline constexpr std::int64_t kEventsPort = 5557;
inline constexpr std::int64_t kReplayPort = 5657;

// What a container runs.
struct Command {
  std::vector<std::string> command;  // empty: the image's own
  std::vector<std::string> args;
  std::map<std::string, std::string> env;

  bool operator==(const Command&) const = default;
};

// Where a worker finds what it reads, within its pod.
struct Places {
  std::string model;             // a folder, or a name of the hub
  std::string chat_template;     // a file; empty: the model's own
  std::string host = "0.0.0.0";  // address that the engine listens on
};

// Of a worker of the pool, which has a template; the user's own arguments come last.
Command worker_command(const agreement::Agreement& agreement, const crd::Spec& spec,
                       const crd::Pool& pool, const Places& places);

// Arguments and environment of the user's that fight what is rendered. Error: InvalidArgument; the
// message names the fix, the param the field below the template: "args[3]", "env[0].name".
Result<Done> check_own_arguments(const crd::Pool& pool);

}  // namespace sightline::commands
