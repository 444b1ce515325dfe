// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/contract/serve_settings.h"
#include "common/hosts/lookup.h"
#include "common/runtime/metrics.h"

#include "router/workers/fleet/fleet.h"

namespace sightline::fleet {

// The fleet's thread: probes workers when they are due, reads their load, and applies new worker
// lists. It also calls the fleet's listeners, except during start().
// Thread safety: set_workers() and reload_workers() from any thread, the others from one thread.
class FleetControl {
 public:
  // The objects that it uses. All outlive it.
  struct Deps {
    Fleet& fleet;
    // For the workers' hosts.
    hosts::Lookup& names;
    runtime::Metrics& metrics;
    const Clock& clock;
  };
  // Starts nothing before start().
  FleetControl(const contract::FleetSettings& settings, const Deps& deps);
  ~FleetControl();  // calls stop()
  FleetControl(const FleetControl&) = delete;
  FleetControl& operator=(const FleetControl&) = delete;

  // Applies these workers, then starts the thread. When it returns, the fleet's snapshot has them.
  void start(const std::vector<contract::WorkerSpec>& workers);
  // Applies a new list of workers, soon after the return.
  void set_workers(std::vector<contract::WorkerSpec> workers);
  // The same for a changed configuration. An error leaves the workers as they are and is logged.
  // The metric for configuration reloads counts both results.
  void reload_workers(Result<std::vector<contract::WorkerSpec>> workers);
  // Ends the thread and its calls to workers. May be called twice.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sightline::fleet
