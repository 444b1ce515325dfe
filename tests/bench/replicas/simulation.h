// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/clock.h"
#include "common/contract/serve_settings.h"

#include "tests/bench/replicas/engine.h"
#include "tests/bench/replicas/trace.h"

namespace sightline::quality {

// The processes and their delays. Requests go to the routers in turn. A delay is the time from one
// process to another.
struct Scenario {
  std::uint32_t engines = 8;
  std::uint32_t routers = 1;
  bool shares_load = false;
  // From the end of a step to the router's index.
  Duration event_delay = std::chrono::milliseconds(2);
  Duration load_batch = std::chrono::milliseconds(5);  // changed load waits for more.
  Duration load_delay = std::chrono::milliseconds(1);  // from a router to another router's book.
  Duration answer_delay = std::chrono::microseconds(500);  // from router to engine, and back.
  double load_loss = 0;  // share of lost messages about load, 0 to 1.
  double speed = 1;      // divides the times of the trace.
  std::uint64_t seed = 1;
  EngineModel engine = {};
  contract::RoutingSettings routing = {};
};

// The results of a run.
struct Outcome {
  std::uint64_t requests = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t hit_tokens = 0;       // found in the engines' caches.
  std::vector<Duration> first_token;  // after the request's arrival, ascending.
  // The share of the engines' time for prefill and decode while requests came. Above 1, more
  // requests came than the engines can serve.
  double load = 0;
  // By how many seconds of prefill the fullest engine's backlog exceeded the mean. The mean over
  // time.
  double imbalance_s = 0;
  // After the last request: whether the routers' state equals the engines' state.
  bool indexes_equal_engines = false;
  bool load_is_zero = false;

  [[nodiscard]] double hit_share() const;
  [[nodiscard]] Duration first_token_at(double share) const;  // 0.5: the median
};

// Runs the simulation. It is deterministic: equal arguments give equal outcomes.
Outcome simulate(const Trace& trace, const Scenario& scenario);

// Returns the speed at which the engines of one router have this load, within about a hundredth.
double speed_for(const Trace& trace, Scenario scenario, double load);

}  // namespace sightline::quality
