// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/result.h"

#include "simulator/cluster/settings.h"

namespace sightline::cluster {

// `sightline simulate`: starts the engines, prints one line per engine (its `--worker` value) and
// "ready" on standard output, serves until SIGINT or SIGTERM. The value is the exit status.
Result<int> run_simulate(const SimulateSettings& settings);

}  // namespace sightline::cluster
