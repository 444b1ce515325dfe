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

// The commands that start an engine in agreement with the frontends and routers of its
// revision.
namespace sightline::commands {

// The ports of a worker's pod. Rank r of an engine uses each port plus r. The ranges of events and
// replay do not overlap for the 64 possible ranks.
inline constexpr std::int64_t kEnginePort = 8000;
inline constexpr std::int64_t kEventsPort = 5557;
inline constexpr std::int64_t kReplayPort = 5657;

// What a container runs.
struct ContainerCommand {
  // Empty: the image's own command.
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;

  bool operator==(const ContainerCommand&) const = default;
};

// The places in a worker's pod from which it reads.
struct Places {
  // A folder, or a name of the hub.
  std::string model;
  // A file. Empty: the model's own template.
  std::string chat_template;
  // The address on which the engine listens.
  std::string host = "0.0.0.0";
};

// The command of a worker of a pool with a template. The user's own arguments come last.
ContainerCommand worker_command(const agreement::Agreement& agreement, const crd::Spec& spec,
                                const crd::Pool& pool, const Places& places);

// Checks for arguments and environment variables of the user that contradict the rendered ones.
// Errors: InvalidArgument. The message names the remedy, the param names the field below the
// template: "args[3]", "env[0].name".
Result<Done> check_own_arguments(const crd::Pool& pool);

}  // namespace sightline::commands
