// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/apps/agent_drain.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "common/base/json.h"
#include "common/base/mutex.h"
#include "common/base/number.h"
#include "common/runtime/worker_thread.h"

namespace sightline::apps {
namespace {

// How often waiting calls are checked.
constexpr Duration kLookInterval = std::chrono::milliseconds(50);
constexpr Duration kIdleWait = std::chrono::hours(1);  // until a call comes

// A worker in state down or starting runs no request.
bool is_idle(const fleet::Worker& worker) {
  return worker.state == fleet::WorkerState::Down || worker.state == fleet::WorkerState::Starting ||
         (worker.running == 0 && worker.waiting == 0);
}

struct Waiter {
  admin_port::AdminServer::Respond respond;
  Instant since;
  Instant until;
};

}  // namespace

Result<Duration> parse_drain_timeout(const std::string& text) {
  const auto seconds = whole_number(text, static_cast<std::uint32_t>(kDrainWaitMax.count()));
  if (!seconds) {
    return client_error(
        ErrorCode::InvalidArgument,
        "timeout must be a whole number of seconds, 0 to " + std::to_string(kDrainWaitMax.count()));
  }
  return Duration(std::chrono::seconds(*seconds));
}

bool is_idle(const fleet::FleetSnapshot& fleet) {
  return std::all_of(fleet.workers.begin(), fleet.workers.end(),
                     [](const auto& worker) { return is_idle(*worker); });
}

std::string drain_json(const fleet::FleetSnapshot& fleet, bool drained, Duration waited) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(waited).count();
  std::string out = std::string(R"({"drained":)") + (drained ? "true" : "false") +
                    R"(,"waited_ms":)" + std::to_string(ms) + R"(,"workers":[)";
  bool is_first = true;
  for (const auto& worker : fleet.workers) {
    if (!std::exchange(is_first, false)) out += ",";
    out += R"({"name":)" + json::to_quoted(worker->spec.name) + R"(,"state":)" +
           json::to_quoted(name_of(worker->state)) + R"(,"running":)" +
           std::to_string(worker->running) + R"(,"waiting":)" + std::to_string(worker->waiting) +
           "}";
  }
  return out + "]}";
}

struct AgentDrain::State {
  State(Options given, const fleet::Fleet& whose, std::function<void()> told, const Clock& time)
      : options(given), fleet(whose), tell(std::move(told)), clock(time) {}

  const Options options;
  const fleet::Fleet& fleet;
  const std::function<void()> tell;
  const Clock& clock;

  Mutex mutex;
  StopCondVar changed;
  std::vector<Waiter> waiters SL_GUARDED_BY(mutex);
  bool stopped SL_GUARDED_BY(mutex) = false;
  std::optional<WorkerThread> thread SL_GUARDED_BY(mutex);

  void run(const std::stop_token& stop) {
    std::optional<Instant> idle_since;
    while (!stop.stop_requested()) run_step([&] { look(stop, idle_since); });
  }

  void look(const std::stop_token& stop, std::optional<Instant>& idle_since) {
    const Instant now = clock.now();
    if (!is_idle(*fleet.snapshot())) {
      idle_since.reset();
    } else if (!idle_since) {
      idle_since = now;
    }
    // Outside of the mutex, because answers are written to connections.
    answer(now, idle_since);
    const MutexLock lock(mutex);
    // The next call measures its own quiet time.
    if (waiters.empty()) idle_since.reset();
    wait(stop);
  }

  void wait(const std::stop_token& stop) SL_REQUIRES(mutex) {
    // Without a waiting call, only a new one wakes the thread.
    const bool nobody = waiters.empty();
    const Instant until = clock.now() + (nobody ? kIdleWait : kLookInterval);
    changed.wait_until(mutex, stop, until,
                       [this, nobody]() SL_REQUIRES(mutex) { return nobody && !waiters.empty(); });
  }

  void answer(Instant now, std::optional<Instant> idle_since) {
    struct Due {
      Waiter waiter;
      bool drained;
    };
    std::vector<Due> due;
    {
      const MutexLock lock(mutex);
      std::erase_if(waiters, [&](const Waiter& waiter) {
        const bool drained =
            // The quiet time counts only after the call: before it, routers sent requests.
            idle_since && now - std::max(*idle_since, waiter.since) >= options.quiet;
        if (!drained && now < waiter.until) return false;
        due.push_back({waiter, drained});
        return true;
      });
    }
    for (const Due& one : due) {
      one.waiter.respond(
          {.status = one.drained ? 200 : 504,
           .body = drain_json(*fleet.snapshot(), one.drained, now - one.waiter.since)});
    }
  }
};

AgentDrain::AgentDrain(Options options, const fleet::Fleet& fleet, std::function<void()> tell,
                       const Clock& clock)
    : state_(std::make_unique<State>(options, fleet, std::move(tell), clock)) {}

AgentDrain::~AgentDrain() { stop(); }

void AgentDrain::run(const admin_port::AdminRequest& request,
                     const admin_port::AdminServer::Respond& respond) {
  Duration timeout = kDrainWait;
  if (const std::string* given = request.find("timeout")) {
    const auto parsed = parse_drain_timeout(*given);
    if (!parsed.ok()) return respond(admin_port::admin_error(400, parsed.error().message));
    timeout = *parsed;
  }
  State& state = *state_;
  // Each call repeats it, because the engine may be another one by now.
  state.tell();
  const Instant now = state.clock.now();
  bool is_taken = false;
  {
    const MutexLock lock(state.mutex);
    // After stop(), no thread would answer the call.
    is_taken = !state.stopped && state.waiters.size() < kDrainsMax;
    if (is_taken) state.waiters.push_back({respond, now, now + timeout});
    if (is_taken && !state.thread) {
      state.thread.emplace("sl-drain", [s = &state](const std::stop_token& stop) { s->run(stop); });
    }
  }
  if (!is_taken)
    return respond(
        admin_port::admin_error(503, "the agent is stopping, or too many drain calls are waiting"));
  state.changed.notify_all();
}

void AgentDrain::stop() {
  std::optional<WorkerThread> ending;
  std::vector<Waiter> left;
  {
    const MutexLock lock(state_->mutex);
    state_->stopped = true;
    ending = std::exchange(state_->thread, std::nullopt);
    left = std::exchange(state_->waiters, {});
  }
  // The thread may be answering. It ends before the others are answered.
  ending.reset();
  for (const Waiter& waiter : left) {
    waiter.respond(admin_port::admin_error(503, "the agent is stopping"));
  }
}

}  // namespace sightline::apps
