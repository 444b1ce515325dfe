// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/command/invocation.h"

namespace sightline::manager {

// Runs `sightline-operator …` to its end. The value is the exit status: 0 well, 1 a failure while
// running or the Lease lost, 2 a mistake in how it was called.
int operator_command(const command::Invocation& invocation);

}  // namespace sightline::manager
