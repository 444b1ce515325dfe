// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/fleet_control.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/contract/metrics_process.h"
#include "common/runtime/worker_thread.h"

#include "router/engine/families/families.h"
#include "router/workers/fleet/api_keys.h"
#include "router/workers/fleet/worker_client.h"

namespace sightline::fleet {

using contract::WorkerSpec;

namespace {

// Probes without a question for the version, after the worker did not report one.
constexpr std::uint32_t kProbesWithoutVersion = 11;
// The same for the question whether it sleeps, after it did not reply to that.
constexpr std::uint32_t kProbesWithoutSleep = 11;
// The most workers that are probed at the same time. Each probe opens four or five connections. A
// long new list must not use up the descriptors of the process.
constexpr std::size_t kProbesAtOnceMax = 512;
constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();

bool is_refused(const auto& part) {
  return !part.ok() && part.error().code == ErrorCode::Unauthorized;
}

}  // namespace

// Callbacks share it. They may come until the client has stopped.
struct FleetControl::State : std::enable_shared_from_this<FleetControl::State> {
  State(const contract::FleetSettings& fleet_settings, const Deps& deps)
      : settings(fleet_settings),
        fleet(deps.fleet),
        metrics(deps.metrics),
        clock(deps.clock),
        client({.timeout = fleet_settings.probe_timeout, .names = &deps.names}) {}

  // A worker, and when its load is read.
  struct Watched {
    WorkerSpec spec;
    Instant next_scrape{};
    bool is_scraped = false;                  // a reading is under way.
    std::uint32_t probes_before_version = 0;  // until its version is requested.
    bool is_sleep_asked = false;              // it was asked whether it sleeps.
    bool tells_sleep = false;                 // it replied to that
    std::uint32_t probes_before_sleep = 0;    // until it is asked whether it sleeps
  };

  const contract::FleetSettings settings;
  Fleet& fleet;
  runtime::Metrics& metrics;
  const Clock& clock;
  WorkerClient client;
  std::optional<WorkerThread> thread;

  // Members that only the control thread uses, after start().
  ApiKeys keys;
  std::vector<Watched> workers;
  // Taken from the inbox and not done, in reverse order.
  std::vector<std::function<void()>> tasks;
  std::optional<std::vector<WorkerSpec>> list;
  std::vector<WorkerSpec> to_probe;                     // due
  std::size_t probes = 0;                               // under way
  Instant next_look{};                                  // at the work of all workers
  std::unordered_map<std::string, std::size_t> places;  // index in `workers`, by name

  Mutex mutex;
  StopCondVar changed;
  bool is_woken SL_GUARDED_BY(mutex) = false;
  // At most two for each worker: the results of its probe and of its load.
  std::vector<std::function<void()>> inbox SL_GUARDED_BY(mutex);
  std::optional<std::vector<WorkerSpec>> new_workers SL_GUARDED_BY(mutex);

  void post(std::function<void()> task) {
    {
      const MutexLock lock(mutex);
      inbox.push_back(std::move(task));
    }
    changed.notify_all();
  }

  void wake() {
    {
      const MutexLock lock(mutex);
      is_woken = true;
    }
    changed.notify_all();
  }

  void take_workers(const std::vector<WorkerSpec>& next) {
    std::vector<Watched> watched;
    for (const WorkerSpec& spec : next) {
      const Watched* known = find(spec.name);
      watched.push_back(known != nullptr ? *known : Watched{});
      // Another process may run there now, with another version.
      if (!is_same_worker(watched.back().spec, spec)) {
        watched.back().probes_before_version = watched.back().probes_before_sleep = 0;
      }
      watched.back().spec = spec;
    }
    workers = std::move(watched);
    places.clear();
    for (std::size_t i = 0; i < workers.size(); ++i) places[workers[i].spec.name] = i;
    keys.keep(next);
    fleet.set_workers(next);
  }

  Watched* find(const std::string& name) {
    const auto place = places.find(name);
    return place == places.end() ? nullptr : &workers[place->second];
  }

  Instant start_probes() {
    Instant next = clock.now();
    if (to_probe.empty()) {
      // Workers that found no place stay due. They are taken when a probe ends.
      Fleet::DueProbes due = fleet.take_due_probes(kProbesAtOnceMax - probes);
      to_probe = std::move(due.workers);
      next = due.next;
    }
    // From the back, one by one: what runs out of memory is done in the next turn.
    for (; !to_probe.empty(); to_probe.pop_back()) {
      const WorkerSpec& spec = to_probe.back();
      Watched* worker = find(spec.name);
      const bool asks = worker != nullptr && asks_version(*worker);
      const auto ask = asks ? WorkerClient::AskVersion::Yes : WorkerClient::AskVersion::No;
      const ApiKeys::KeyState& key = keys.of(spec, clock.now());
      auto done = [self = shared_from_this(), spec, problem = key.problem](Probe probe) {
        probe.key_problem = problem;
        self->post([self, spec, probe = std::move(probe)] {
          self->probed(spec, probe);
          --self->probes;
        });
      };
      const family::Family& family = families::family_of(spec.family);
      client.start_probe({{spec.host, spec.port}, family, key.key}, ask, std::move(done));
      ++probes;
    }
    return next;
  }

  static bool asks_version(Watched& worker) {
    if (worker.probes_before_version == 0) return true;
    if (worker.probes_before_version != kNever) --worker.probes_before_version;
    return false;
  }

  // A server that reports no version may be slow to start, or another kind of server.
  static std::uint32_t pause_after(const Result<family::Version>& version) {
    if (version.ok()) return kNever;
    const auto code = version.error().code;
    return code == ErrorCode::NotFound || code == ErrorCode::Corrupt ? kProbesWithoutVersion : 0;
  }

  void probed(const WorkerSpec& spec, const Probe& probe) {
    if (is_refused(probe.models) || is_refused(probe.sources) || is_refused(probe.load)) {
      // The key may have been replaced. The next call uses the new one.
      keys.refused(spec, clock.now());
    }
    fleet.apply_probe(spec, probe);
    Watched* worker = find(spec.name);
    if (worker == nullptr || !is_same_worker(worker->spec, spec)) return;
    worker->next_scrape = clock.now() + settings.scrape_interval;
    if (!probe.health.ok()) {
      worker->probes_before_version = 0;  // another version may reply when it is well again
      worker->probes_before_sleep = 0;
      return;
    }
    ask_sleep(*worker);
    if (probe.version) {
      worker->probes_before_version = pause_after(*probe.version);
    }
  }

  // Separate from the probe, which does not wait for it: few servers have this endpoint.
  void ask_sleep(Watched& watched) {
    const WorkerSpec& spec = watched.spec;
    const family::Family& family = families::family_of(spec.family);
    if (family.questions().sleep.empty() || watched.is_sleep_asked) return;
    if (watched.probes_before_sleep > 0) {
      --watched.probes_before_sleep;
      return;
    }
    watched.is_sleep_asked = true;
    auto done = [self = shared_from_this(), spec](Result<bool> is_asleep) {
      self->post([self, spec, is_asleep = std::move(is_asleep)] { self->told(spec, is_asleep); });
    };
    client.start_sleep({{spec.host, spec.port}, family, keys.of(spec, clock.now()).key},
                       std::move(done));
  }

  void told(const WorkerSpec& spec, const Result<bool>& is_asleep) {
    Watched* worker = find(spec.name);
    if (worker == nullptr) return;
    worker->is_sleep_asked = false;
    if (is_asleep.ok()) {
      worker->tells_sleep = true;
      fleet.apply_sleep(spec, *is_asleep);
      return;
    }
    // Without a reply the state stays as it was. A server that cannot sleep is awake.
    const auto code = is_asleep.error().code;
    const bool cannot = code == ErrorCode::NotFound || code == ErrorCode::Corrupt;
    if (cannot) fleet.apply_sleep(spec, false);
    if (cannot) worker->tells_sleep = false;
    if (!worker->tells_sleep) worker->probes_before_sleep = kProbesWithoutSleep;
  }

  Instant look_at_work() {
    const Instant now = clock.now();
    if (next_look <= now) {
      fleet.check_work();
      next_look = now + settings.scrape_interval;
    }
    return next_look;
  }

  // Only workers that answer. The probes of the others read their load when they answer again.
  Instant start_scrapes() {
    const Instant now = clock.now();
    Instant next = now + settings.scrape_interval;
    const auto snapshot = fleet.snapshot();
    for (Watched& watched : workers) {
      if (watched.is_scraped) continue;
      if (watched.next_scrape <= now) {
        watched.next_scrape = now + settings.scrape_interval;
        const auto worker = snapshot->find(watched.spec.name);
        if (worker && (worker->is_routable() || worker->state == WorkerState::Draining)) {
          start_scrape(watched);
        }
      }
      next = std::min(next, watched.next_scrape);
    }
    return next;
  }

  void start_scrape(Watched& watched) {
    watched.is_scraped = true;
    auto done = [self = shared_from_this(), spec = watched.spec](Result<ServerLoad> load) {
      self->post([self, spec, load = std::move(load)] { self->scraped(spec, load); });
    };
    const WorkerSpec& spec = watched.spec;
    client.start_load(
        {{spec.host, spec.port}, families::family_of(spec.family), keys.of(spec, clock.now()).key},
        std::move(done));
  }

  void scraped(const WorkerSpec& spec, const Result<ServerLoad>& load) {
    Watched* worker = find(spec.name);
    if (worker == nullptr) return;
    worker->is_scraped = false;
    if (is_refused(load)) keys.refused(spec, clock.now());
    if (load.ok()) fleet.apply_load(spec, *load);
  }

  // Does everything that has arrived since the last turn.
  void take_inbox() {
    if (!list && tasks.empty()) {
      const MutexLock lock(mutex);
      tasks.swap(inbox);
      std::reverse(tasks.begin(), tasks.end());
      list.swap(new_workers);
      is_woken = false;
    }
    // The list comes first: results of replaced workers are ignored then.
    if (list) take_workers(*list);
    list.reset();
    for (; !tasks.empty(); tasks.pop_back()) tasks.back()();
  }

  void run(const std::stop_token& stop) {
    // A step that runs out of memory is repeated in the next turn.
    while (!stop.stop_requested()) run_step([&] { turn(stop); });
  }

  void turn(const std::stop_token& stop) {
    take_inbox();
    Instant next = start_probes();
    next = std::min(next, start_scrapes());
    next = std::min(next, look_at_work());
    const MutexLock lock(mutex);
    changed.wait_until(mutex, stop, next, [this]() SL_REQUIRES(mutex) {
      return is_woken || !inbox.empty() || new_workers;
    });
  }
};

FleetControl::FleetControl(const contract::FleetSettings& settings, const Deps& deps)
    : state_(std::make_shared<State>(settings, deps)) {}

FleetControl::~FleetControl() { stop(); }

void FleetControl::start(const std::vector<WorkerSpec>& workers) {
  state_->take_workers(workers);
  // A weak pointer: the fleet may outlive this object.
  state_->fleet.on_probe_sooner([state = std::weak_ptr<State>(state_)] {
    if (const auto alive = state.lock()) alive->wake();
  });
  state_->thread.emplace("fleet",
                         [state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

void FleetControl::set_workers(std::vector<WorkerSpec> workers) {
  {
    const MutexLock lock(state_->mutex);
    state_->new_workers = std::move(workers);
  }
  state_->changed.notify_all();
}

void FleetControl::reload_workers(Result<std::vector<WorkerSpec>> workers) {
  const bool is_good = workers.ok();
  state_->metrics.counter(contract::kConfigReloadsTotal, {is_good ? "applied" : "refused"}).add();
  if (!is_good) {
    log(LogLevel::Error, "configuration rejected: the workers stay unchanged",
        {{"reason", workers.error().message}});
    return;
  }
  log(LogLevel::Info, "configuration changed", {{"workers", workers->size()}});
  set_workers(std::move(*workers));
}

void FleetControl::stop() {
  if (!state_->thread) return;
  // From here on no request thread wakes this one.
  state_->fleet.on_probe_sooner(nullptr);
  state_->thread.reset();
  state_->client.stop();
  // The remaining tasks hold references to the state, which would then never be destroyed.
  const MutexLock lock(state_->mutex);
  state_->inbox.clear();
  state_->tasks.clear();
}

}  // namespace sightline::fleet
