// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/command/invocation.h"

namespace sightline::cli {

using command::Invocation;

// Runs `sightline <command> …` to its end. The value is the exit status: 0 well, 1 a failure while
// running, 2 a mistake in how it was called.
int run(const Invocation& invocation);

// The commands; arguments without the command's own name.
int agent_command(const Invocation& invocation);
int drain_command(const Invocation& invocation);
int serve_command(const Invocation& invocation);
int simulate_command(const Invocation& invocation);
int top_command(const Invocation& invocation);

}  // namespace sightline::cli
