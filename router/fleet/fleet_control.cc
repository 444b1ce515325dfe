// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/fleet/fleet_control.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/base/log.h"
#include "common/runtime/worker_thread.h"

#include "router/fleet/engine_client.h"

namespace sightline::fleet {

using contract::WorkerSpec;

// Shared with callbacks, which may come until the client has stopped.
struct FleetControl::State : std::enable_shared_from_this<FleetControl::State> {
  State(const contract::FleetSettings& fleet_settings, Fleet& controlled_fleet,
        runtime::Metrics& fleet_metrics, const Clock& fleet_clock)
      : settings(fleet_settings),
        fleet(controlled_fleet),
        metrics(fleet_metrics),
        clock(fleet_clock),
        client({.timeout = fleet_settings.probe_timeout}) {}

  // A worker and the readings of its load.
  struct Watched {
    WorkerSpec spec;
    Instant next_scrape{};
    bool is_scraped = false;  // a reading is under way
  };

  const contract::FleetSettings settings;
  Fleet& fleet;
  runtime::Metrics& metrics;
  const Clock& clock;
  EngineClient client;
  std::optional<WorkerThread> thread;

  // Only the control thread, after start():
  std::vector<Watched> workers;
  std::unordered_map<std::string, std::size_t> places;  // in `workers`, by the worker's name

  std::mutex mutex;  // guards everything below
  std::condition_variable_any changed;
  bool is_woken = false;
  // At most two per worker: the answers to its probe and to its load reading.
  std::vector<std::function<void()>> inbox;
  std::optional<std::vector<WorkerSpec>> new_workers;

  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex);
      inbox.push_back(std::move(task));
    }
    changed.notify_all();
  }

  void wake() {
    {
      const std::lock_guard lock(mutex);
      is_woken = true;
    }
    changed.notify_all();
  }

  void take_workers(const std::vector<WorkerSpec>& next) {
    std::vector<Watched> watched;
    for (const WorkerSpec& spec : next) {
      const Watched* known = find(spec.name);
      watched.push_back(known != nullptr ? *known : Watched{});
      watched.back().spec = spec;
    }
    workers = std::move(watched);
    places.clear();
    for (std::size_t i = 0; i < workers.size(); ++i) places[workers[i].spec.name] = i;
    fleet.set_workers(next);
  }

  Watched* find(const std::string& name) {
    const auto place = places.find(name);
    return place == places.end() ? nullptr : &workers[place->second];
  }

  Instant start_probes() {
    const Fleet::DueProbes due = fleet.take_due_probes();
    for (const WorkerSpec& spec : due.workers) {
      client.start_probe({spec.host, spec.port}, [self = shared_from_this(), spec](Probe probe) {
        self->post([self, spec, probe = std::move(probe)] { self->probed(spec, probe); });
      });
    }
    return due.next;
  }

  void probed(const WorkerSpec& spec, const Probe& probe) {
    fleet.apply_probe(spec, probe);
    Watched* worker = find(spec.name);
    if (worker != nullptr) worker->next_scrape = clock.now() + settings.scrape_interval;
  }

  // Only workers that answer; the others' probes bring their load when they do.
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
    auto done = [self = shared_from_this(), spec = watched.spec](Result<EngineLoad> load) {
      self->post([self, spec, load = std::move(load)] { self->scraped(spec, load); });
    };
    client.start_load({watched.spec.host, watched.spec.port}, std::move(done));
  }

  void scraped(const WorkerSpec& spec, const Result<EngineLoad>& load) {
    Watched* worker = find(spec.name);
    if (worker == nullptr) return;
    worker->is_scraped = false;
    if (load.ok()) fleet.apply_load(spec, *load);
  }

  // Everything that came in since the last turn.
  void take_inbox() {
    std::vector<std::function<void()>> tasks;
    std::optional<std::vector<WorkerSpec>> list;
    {
      const std::lock_guard lock(mutex);
      tasks.swap(inbox);
      list.swap(new_workers);
      is_woken = false;
    }
    if (list) take_workers(*list);
    for (const auto& task : tasks) task();
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      take_inbox();
      Instant next = start_probes();
      next = std::min(next, start_scrapes());
      std::unique_lock lock(mutex);
      changed.wait_until(lock, stop, next,
                         [this] { return is_woken || !inbox.empty() || new_workers; });
    }
  }
};

FleetControl::FleetControl(const contract::FleetSettings& settings, Fleet& fleet,
                           runtime::Metrics& metrics, const Clock& clock)
    : state_(std::make_shared<State>(settings, fleet, metrics, clock)) {}

FleetControl::~FleetControl() { stop(); }

void FleetControl::start(const std::vector<WorkerSpec>& workers) {
  state_->take_workers(workers);
  state_->fleet.on_probe_sooner([state = std::weak_ptr<State>(state_)] {
    if (const auto alive = state.lock()) alive->wake();
  });
  state_->thread.emplace("fleet",
                         [state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

void FleetControl::set_workers(std::vector<WorkerSpec> workers) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->new_workers = std::move(workers);
  }
  state_->changed.notify_all();
}

void FleetControl::reload_workers(Result<std::vector<WorkerSpec>> workers) {
  const bool is_good = workers.ok();
  state_->metrics.counter(contract::kConfigReloadsTotal, {is_good ? "applied" : "refused"}).add();
  if (!is_good) {
    log(LogLevel::Error, "configuration refused, workers stay as they are",
        {{"reason", workers.error().message}});
    return;
  }
  log(LogLevel::Info, "configuration changed", {{"workers", workers->size()}});
  set_workers(std::move(*workers));
}

void FleetControl::stop() {
  if (!state_->thread) return;
  state_->fleet.on_probe_sooner(nullptr);
  state_->thread.reset();
  state_->client.stop();
  // What is left in the inbox holds the state alive.
  const std::lock_guard lock(state_->mutex);
  state_->inbox.clear();
}

}  // namespace sightline::fleet
