// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/contract/serve_settings.h"

#include "router/fleet/fleet.h"

namespace sightline::fleet {

// The fleet's thread: probes workers when due, scrapes their load, applies new worker lists.
// Thread safety: all methods from any thread.
class FleetControl {
 public:
  // Fleet and clock must outlive it.
  FleetControl(const contract::FleetSettings& settings, Fleet& fleet, const Clock& clock);
  ~FleetControl();  // as stop()
  FleetControl(const FleetControl&) = delete;
  FleetControl& operator=(const FleetControl&) = delete;

  void start();
  // Takes over a new list of workers (flags, changed file) on the fleet's thread.
  void set_workers(std::vector<contract::WorkerSpec> workers);
  // Looks for due probes now, for example after Fleet::report_failure.
  void wake();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::fleet
