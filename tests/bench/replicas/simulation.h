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

// Requests go to the routers in turn. Delays are those from one process to the other.
struct Scenario {
  std::uint32_t engines = 8;
  std::uint32_t routers = 1;
  bool shares_load = false;
  Duration event_delay = std::chrono::milliseconds(2);     // end of a step to the router's index
  Duration load_batch = std::chrono::milliseconds(5);      // what is booked waits for more
  Duration load_delay = std::chrono::milliseconds(1);      // sent to another router's book
  Duration answer_delay = std::chrono::microseconds(500);  // router to engine, and back
  double load_loss = 0;  // share of the messages on load that do not arrive, 0 to 1
  double speed = 1;      // the trace's time is divided by it
  std::uint64_t seed = 1;
  EngineModel engine = {};
  contract::RoutingSettings routing = {};
};

struct Outcome {
  std::uint64_t requests = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t hit_tokens = 0;       // found in the engines' caches
  std::vector<Duration> first_token;  // after the request's arrival, ascending
  // Share of the engines' time that computing and decoding took while requests came; above 1: more
  // came than they can do.
  double load = 0;
  // Seconds of prefill by which the fullest engine's backlog was beyond the mean; mean over time.
  double imbalance_s = 0;
  // After the last request: what routers believe and what is true.
  bool indexes_equal_engines = false;
  bool load_is_zero = false;

  [[nodiscard]] double hit_share() const;
  [[nodiscard]] Duration first_token_at(double share) const;  // 0.5: the median
};

// Deterministic: equal arguments, equal outcome.
Outcome simulate(const Trace& trace, const Scenario& scenario);

// The speed at which one router's engines have the load. Within about a hundredth.
double speed_for(const Trace& trace, Scenario scenario, double load);

}  // namespace sightline::quality
