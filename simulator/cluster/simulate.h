// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/result.h"

#include "simulator/cluster/settings.h"

namespace sightline::cluster {

// Runs `sightline simulate`. It starts the engines and prints one line per engine (its `--worker`
// value) and "ready" on standard output. It serves until SIGINT or SIGTERM. Returns the exit
// status.
Result<int> run_simulate(const SimulateSettings& settings);

}  // namespace sightline::cluster
