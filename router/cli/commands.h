// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/command/invocation.h"

namespace sightline::cli {

using command::Invocation;

// Runs `sightline <command> …` to its end. Returns the exit status: 0 for success, 1 for a failure
// while it ran, 2 for a mistake in the call.
int run(const Invocation& invocation);

// The commands. `invocation` has the arguments after the command's own name. Each returns run()'s
// status.
int agent_command(const Invocation& invocation);
int drain_command(const Invocation& invocation);
int serve_command(const Invocation& invocation);
int simulate_command(const Invocation& invocation);
int top_command(const Invocation& invocation);

}  // namespace sightline::cli
