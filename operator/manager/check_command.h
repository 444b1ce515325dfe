// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/command/invocation.h"

namespace sightline::manager {

// Runs `sightline-operator check …` to its end. The value is the exit status: 0 all is well, 1
// something is not, 2 a mistake in how it was called.
int check_command(const command::Invocation& invocation);

}  // namespace sightline::manager
