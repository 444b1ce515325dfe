// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/command/invocation.h"

namespace sightline::manager {

// Runs `sightline-operator …` to its end. Returns the exit status: 0 after an orderly end, 1 after
// a failure or when the Lease was lost, 2 for wrong arguments.
int operator_command(const command::Invocation& invocation);

}  // namespace sightline::manager
