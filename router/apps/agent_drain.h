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

// How long `POST /drain` waits unless told otherwise, and at most.
inline constexpr std::chrono::seconds kDrainWait{30};
inline constexpr std::chrono::seconds kDrainWaitMax{3600};
// Calls that wait at the same time; more are refused.
inline constexpr std::size_t kDrainsMax = 16;

// Text of `timeout=`: whole seconds. Errors: InvalidArgument, with what is allowed.
Result<Duration> parse_drain_timeout(const std::string& text);

// True: nothing runs and nothing waits at any worker, by its last reading. One that does not answer
// runs nothing for anybody. Pure.
bool is_idle(const fleet::FleetSnapshot& fleet);

// {"drained":…,"waited_ms":…,"workers":[{"name","state","running","waiting"}]}.
std::string drain_json(const fleet::FleetSnapshot& fleet, bool drained, Duration waited);

// `POST /drain?timeout=SECONDS`: routers are told to send the workers nothing more, and the answer
// comes once the workers have been idle for `quiet`, 200, or when the time is over, 504. Draining
// goes on until the agent ends, or the engine: one that is started anew is open. One thread of its
// own, sl-drain, from the first call on.
// Thread safety: all methods from any thread; stop() from one.
class AgentDrain {
 public:
  struct Options {
    // Readings of the load come this far apart at most, and requests under way reach the engine
    // within less.
    Duration quiet = std::chrono::seconds(2);
  };
  // All outlive it. tell: at each call, so that routers know.
  AgentDrain(Options options, const fleet::Fleet& fleet, std::function<void()> tell,
             const Clock& clock);
  ~AgentDrain();  // as stop()
  AgentDrain(const AgentDrain&) = delete;
  AgentDrain& operator=(const AgentDrain&) = delete;

  void run(const admin_port::AdminRequest& request,
           const admin_port::AdminServer::Respond& respond);
  // Ends the waiting calls with 503. Idempotent.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::apps
