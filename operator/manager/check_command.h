// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/command/invocation.h"

namespace sightline::manager {

// Runs `sightline-operator check …` to its end. Returns the exit status: 0 if all is well, 1 if
// something is not, 2 for wrong arguments.
int check_command(const command::Invocation& invocation);

}  // namespace sightline::manager
