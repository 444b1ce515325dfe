// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "common/admin_port/admin_server.h"
#include "common/base/clock.h"
#include "common/base/result.h"

#include "router/workers/fleet/fleet.h"

namespace sightline::apps {

// How long `POST /drain` waits without a timeout parameter, and the longest timeout.
inline constexpr std::chrono::seconds kDrainWait{30};
inline constexpr std::chrono::seconds kDrainWaitMax{3600};
// The most calls that wait at the same time. Further ones are refused.
inline constexpr std::size_t kDrainsMax = 16;

// Reads the value of `timeout=`: whole seconds. Errors: InvalidArgument, with the permitted values.
Result<Duration> parse_drain_timeout(const std::string& text);

// Whether no request runs or waits at any worker, by its last reading. A worker that does not
// answer counts as idle. Pure.
bool is_idle(const fleet::FleetSnapshot& fleet);

// The body of the answer:
// {"drained":…,"waited_ms":…,"workers":[{"name","state","running","waiting"}]}.
std::string drain_json(const fleet::FleetSnapshot& fleet, bool drained, Duration waited);

// Serves `POST /drain?timeout=SECONDS`. It makes routers send the workers no more requests. It
// answers 200 when the workers have been idle for `quiet`, or 504 when the timeout is over. The
// workers stay drained until the agent or the engine ends. A restarted engine gets requests again.
// It has its own thread, sl-drain, from the first call on. Thread safety: all methods from any
// thread, stop() from one.
class AgentDrain {
 public:
  struct Options {
    // Readings of the load are at most this far apart. Requests under way reach the engine in less
    // time.
    Duration quiet = std::chrono::seconds(2);
  };
  // All outlive it. `tell` is called at each call of /drain, and informs the routers.
  AgentDrain(Options options, const fleet::Fleet& fleet, std::function<void()> tell,
             const Clock& clock);
  ~AgentDrain();  // calls stop()
  AgentDrain(const AgentDrain&) = delete;
  AgentDrain& operator=(const AgentDrain&) = delete;

  // Answers a call later, by `respond`.
  void run(const admin_port::AdminRequest& request,
           const admin_port::AdminServer::Respond& respond);
  // Ends the waiting calls with 503. May be called twice.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::apps
