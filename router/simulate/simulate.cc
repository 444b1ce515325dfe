// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/simulate/simulate.h"

#include <cstdio>

#include "common/runtime/shutdown.h"

#include "router/simulate/simulated_cluster.h"

namespace sightline::simulate {

Result<int> run_simulate(const SimulateSettings& settings) {
  // Before any thread: blocks the signals in all of them.
  Shutdown shutdown;
  auto cluster = SL_TRY(SimulatedCluster::start(settings));
  for (std::size_t i = 0; i < cluster->size(); ++i) {
    const std::string name = "w" + std::to_string(i);
    std::printf("engine %zu: --worker '%s'\n", i, cluster->endpoints(i).worker_flag(name).c_str());
  }
  std::printf("ready\n");
  std::fflush(stdout);
  shutdown.on_stop("engines", [&cluster] { cluster.reset(); });
  shutdown.wait();
  return 0;
}

}  // namespace sightline::simulate
