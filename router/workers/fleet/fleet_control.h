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

// The fleet's thread: probes workers when due, scrapes their load, takes over new worker lists.
// The fleet's listeners run on this thread, except during start().
// Thread safety: set_workers and reload_workers from any thread; the rest from one.
class FleetControl {
 public:
  // All of them must outlive it.
  struct Dependencies {
    Fleet& fleet;
    hosts::Lookup& names;  // of the workers' hosts
    runtime::Metrics& metrics;
    const Clock& clock;
  };
  FleetControl(const contract::FleetSettings& settings, const Dependencies& around);
  ~FleetControl();  // as stop()
  FleetControl(const FleetControl&) = delete;
  FleetControl& operator=(const FleetControl&) = delete;

  // Takes these workers, then starts the thread. When it returns, the fleet's snapshot has them.
  void start(const std::vector<contract::WorkerSpec>& workers);
  // Takes over a new list of workers, soon after the return.
  void set_workers(std::vector<contract::WorkerSpec> workers);
  // The same for a changed configuration: an error keeps the workers as they are and is logged;
  // both are counted.
  void reload_workers(Result<std::vector<contract::WorkerSpec>> workers);
  // Ends the thread and what it has under way. Idempotent.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sightline::fleet
