// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/fleet/fleet.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/published.h"

namespace sightline::fleet {

using contract::WorkerSpec;

namespace {

// A probe that times out may be bad luck, a second one is not.
constexpr std::uint32_t kFailedProbesMax = 1;

// What is to be done after the lock is released, in this order.
struct Effects {
  struct Line {
    LogLevel level;
    std::string message;
    std::vector<LogField> fields;
  };
  std::vector<Line> lines;
  std::vector<EngineId> removed;
  std::vector<EngineEndpoints> ready;
  std::vector<std::string> gone_workers;
};

struct Member {
  WorkerSpec spec;
  Worker view;
  std::shared_ptr<const Worker> published;
  Standing standing;
  bool is_probed = false;             // a probe is under way
  std::uint32_t failed_probes = 0;    // in a row
  std::uint32_t failed_requests = 0;  // in a row, those while suspect not counted
  std::optional<Instant> suspect_until;
  Instant next_probe;
};

}  // namespace

class Fleet::State {
 public:
  State(Options fleet_options, FleetListeners fleet_listeners, runtime::Metrics& fleet_metrics,
        const Clock& fleet_clock)
      : options(fleet_options),
        listeners(std::move(fleet_listeners)),
        metrics(fleet_metrics),
        clock(fleet_clock) {}

  const Options options;
  const FleetListeners listeners;
  runtime::Metrics& metrics;
  const Clock& clock;
  Published<FleetSnapshot> snapshot{std::make_shared<const FleetSnapshot>()};
  std::atomic<std::size_t> failing_workers = 0;  // spares report_success the lock

  std::mutex mutex;  // guards everything below
  std::vector<Member> members;
  std::uint64_t revision = 0;
  std::uint32_t next_engine = 0;
  std::function<void()> probe_sooner;

  Member* find(std::string_view name) {
    const auto found = std::find_if(members.begin(), members.end(),
                                    [name](const Member& m) { return m.spec.name == name; });
    return found == members.end() ? nullptr : &*found;
  }

  // The member that a probe was taken for, unless it was replaced since.
  Member* find(const WorkerSpec& spec) {
    Member* member = find(spec.name);
    return member != nullptr && same_but_for_drain(spec, member->spec) ? member : nullptr;
  }

  Member new_member(const WorkerSpec& spec) const {
    Member member;
    member.spec = spec;
    member.standing.block_size_explicit = spec.block_size;
    member.next_probe = clock.now();
    member.view = view_of(spec);
    return member;
  }

  static void drop_engines(Member& member, Effects& effects) {
    for (const EngineEndpoints& engine : member.view.engines) {
      effects.removed.push_back(engine.engine);
    }
    member.view.engines.clear();
    member.standing.block_size_events = 0;
    member.view.block_size = member.view.block_size_configured;
    member.view.is_block_size_guessed = member.standing.block_size_explicit == 0;
  }

  void learn_rank_conflict(Member& member, std::string conflict) const {
    if (member.standing.rank_conflict == conflict) return;
    member.standing.rank_conflict = std::move(conflict);
    if (member.standing.rank_conflict.empty()) return;
    metrics.counter(contract::kRankMismatchTotal, {member.spec.name}).add();
  }

  void set_engines(Member& member, std::vector<EngineEndpoints> engines, Effects& effects) {
    if (same_endpoints(member.view.engines, engines)) return;
    drop_engines(member, effects);
    for (EngineEndpoints& engine : engines) {
      engine.engine = EngineId{next_engine++};
      engine.unverified = "waiting for the first event connection";
      effects.ready.push_back(engine);
    }
    member.view.engines = std::move(engines);
  }

  // Draws the verdict, and makes it known where it changed. Any change of `view` is published.
  void settle(Member& member, Effects& effects) {
    std::vector<Worker*> sound;
    for (Member& m : members) {
      if (m.standing.is_alive && conflict_of(m.view, m.standing).empty()) sound.push_back(&m.view);
    }
    guess_block_sizes(sound);
    const std::uint32_t common = common_block_size(sound);
    for (Member& m : members) {
      const bool is_same = std::exchange(m.standing.block_size_common, common) == common &&
                           m.published && m.published->block_size == m.view.block_size;
      if (&m == &member || !is_same) settle_one(m, effects);
    }
  }

  void settle_one(Member& member, Effects& effects) {
    member.standing.is_drained = member.spec.drain;
    member.standing.is_suspect = member.suspect_until.has_value();
    Verdict verdict = judge(member.view, member.standing);
    const bool is_new = !member.published;
    if (is_new || verdict.state != member.view.state || verdict.reason != member.view.reason) {
      if (is_new || verdict.state != member.view.state) set_state_metric(member, verdict.state);
      member.view.state = verdict.state;
      member.view.reason = std::move(verdict.reason);
      member.view.revision = revision + 1;
      effects.lines.push_back({level_of(member.view.state),
                               "worker state",
                               {{"worker", member.spec.name},
                                {"state", name_of(member.view.state)},
                                {"reason", member.view.reason}}});
    }
    member.published = std::make_shared<const Worker>(member.view);
  }

  void set_state_metric(const Member& member, WorkerState now) const {
    for (const WorkerState state : kWorkerStates) {
      metrics.gauge(contract::kWorkerState, {member.spec.name, name_of(state)})
          .set(state == now ? 1 : 0);
    }
  }

  void publish() {
    auto next = std::make_shared<FleetSnapshot>();
    next->revision = ++revision;
    for (const Member& member : members) next->workers.push_back(member.published);
    snapshot.publish(std::move(next));
  }

  void act(const Effects& effects) const {
    for (const Effects::Line& line : effects.lines) log(line.level, line.message, line.fields);
    for (const EngineId engine : effects.removed) {
      if (listeners.engine_removed) listeners.engine_removed(engine);
    }
    for (const EngineEndpoints& engine : effects.ready) {
      if (listeners.engine_ready) listeners.engine_ready(engine);
    }
    for (const std::string& worker : effects.gone_workers) metrics.remove_worker(worker);
  }

  void replace_members(const std::vector<WorkerSpec>& workers, Effects& effects) {
    std::vector<Member> next;
    for (const WorkerSpec& spec : workers) {
      Member* old = find(spec.name);
      if (old != nullptr && same_but_for_drain(old->spec, spec)) {
        old->spec = spec;
        next.push_back(std::move(*old));
        old->spec.name.clear();
      } else {
        next.push_back(new_member(spec));
      }
    }
    members.swap(next);
    for (Member& old : next) {
      if (old.spec.name.empty()) continue;
      drop_engines(old, effects);
      count_failing(old, 0);
      if (find(old.spec.name) != nullptr) continue;
      effects.gone_workers.push_back(old.spec.name);
      effects.lines.push_back({LogLevel::Info, "worker removed", {{"worker", old.spec.name}}});
    }
    for (Member& member : members) settle(member, effects);
  }

  void count_failing(Member& member, std::uint32_t failed_requests) {
    if (member.failed_requests == 0 && failed_requests != 0) ++failing_workers;
    if (member.failed_requests != 0 && failed_requests == 0) --failing_workers;
    member.failed_requests = failed_requests;
  }

  [[nodiscard]] Duration backoff(std::uint32_t failures) const {
    Duration wait = options.suspect_backoff;
    for (std::uint32_t i = 1; i < failures && wait < options.suspect_backoff_max; ++i) wait *= 2;
    return std::min(wait, options.suspect_backoff_max);
  }

  void probe_failed(Member& member, const Probe& probe, Effects& effects) {
    ++member.failed_probes;
    member.standing.failure = probe.health.error().message;
    member.next_probe =
        clock.now() + std::min(options.probe_interval, backoff(member.failed_probes));
    if (!member.standing.is_alive) return;
    if (probe.refused || member.failed_probes > kFailedProbesMax) {
      member.standing.is_alive = false;
      member.suspect_until.reset();
      // Its cache is gone with it; if only the network was, the replay brings all of it back.
      drop_engines(member, effects);
    } else {
      member.suspect_until = member.next_probe;
    }
  }

  void probe_answered(Member& member, const Probe& probe, Effects& effects) {
    const Instant now = clock.now();
    member.failed_probes = 0;
    member.standing.is_alive = member.standing.was_alive = true;
    if (member.suspect_until && now >= *member.suspect_until) member.suspect_until.reset();
    member.next_probe = member.suspect_until.value_or(now + options.probe_interval);
    if (probe.models.ok()) set_models(member.view, *probe.models);
    const bool is_open = member.view.engines.empty() && member.standing.rank_conflict.empty();
    if (is_open || tells_endpoints(probe)) {
      Discovery found = discover(member.spec, probe);
      set_ranks(member.view, found.ranks);
      learn_rank_conflict(member, std::move(found.rank_conflict));
      member.standing.unknown_events = std::move(found.reason);
      set_engines(member, std::move(found.engines), effects);
    }
    if (probe.load.ok()) set_load(member.view, member.standing, *probe.load);
  }

  // Changes what is known of an engine; `change` says whether it did.
  void change(EngineId engine, const auto& change) {
    Effects effects;
    {
      const std::lock_guard lock(mutex);
      for (Member& member : members) {
        for (EngineEndpoints& endpoints : member.view.engines) {
          if (endpoints.engine != engine || !change(member, endpoints, effects)) continue;
          settle(member, effects);
          publish();
        }
      }
    }
    act(effects);
  }

  void learn_block_size(Member& member, const EngineEndpoints& engine, Effects& effects) {
    const std::uint32_t configured = member.view.block_size_configured;
    const std::uint32_t told = engine.block_size_events;
    member.standing.block_size_events = member.view.block_size = told;
    member.view.is_block_size_guessed = false;
    if (!engine.has_several_block_sizes && (configured == 0 || configured == told)) return;
    metrics.counter(contract::kBlockSizeMismatchTotal, {member.spec.name}).add();
    const bool is_harmless = conflict_of(member.view, member.standing).empty();
    effects.lines.push_back(
        {is_harmless ? LogLevel::Info : LogLevel::Warn,
         "the events tell another block size",
         {{"worker", member.spec.name}, {"events", told}, {"configured", configured}}});
  }
};

Fleet::Fleet(Options options, FleetListeners listeners, runtime::Metrics& metrics,
             const Clock& clock)
    : state_(std::make_unique<State>(options, std::move(listeners), metrics, clock)) {}
Fleet::~Fleet() = default;

std::shared_ptr<const FleetSnapshot> Fleet::snapshot() const { return state_->snapshot.read(); }

void Fleet::set_workers(const std::vector<WorkerSpec>& workers) {
  Effects effects;
  {
    const std::lock_guard lock(state_->mutex);
    state_->replace_members(workers, effects);
    state_->publish();
  }
  state_->act(effects);
}

void Fleet::set_block_size_from_events(EngineId engine, std::uint32_t tokens, bool has_several) {
  state_->change(engine, [&](Member& member, EngineEndpoints& endpoints, Effects& effects) {
    if (!set_block_size(endpoints, tokens, has_several)) return false;
    state_->learn_block_size(member, endpoints, effects);
    return true;
  });
}

void Fleet::set_event_health(EngineId engine, std::string_view unverified) {
  state_->change(engine, [&](Member& member, EngineEndpoints& endpoints, Effects& effects) {
    if (std::exchange(endpoints.unverified, unverified) == unverified) return false;
    if (!member.view.has_several_ranks()) return true;
    // The worker's own line says nothing while another rank is well.
    effects.lines.push_back({unverified.empty() ? LogLevel::Info : LogLevel::Warn,
                             "rank state",
                             {{"worker", member.spec.name},
                              {"rank", endpoints.rank},
                              {"state", unverified.empty() ? "ready" : "unverified"},
                              {"reason", unverified}}});
    return true;
  });
}

void Fleet::report_failure(std::string_view worker, std::string_view reason) {
  Effects effects;
  std::function<void()> wake;
  {
    const std::lock_guard lock(state_->mutex);
    Member* member = state_->find(worker);
    // Requests that fail together are one failure.
    if (member == nullptr || !member->standing.is_alive || member->suspect_until) return;
    state_->count_failing(*member, member->failed_requests + 1);
    member->standing.failure = "requests fail: " + std::string(reason);
    member->suspect_until = state_->clock.now() + state_->backoff(member->failed_requests);
    member->next_probe = *member->suspect_until;
    state_->settle(*member, effects);
    state_->publish();
    wake = state_->probe_sooner;
  }
  state_->act(effects);
  if (wake) wake();
}

void Fleet::report_success(std::string_view worker) {
  if (state_->failing_workers == 0) return;
  const std::lock_guard lock(state_->mutex);
  if (Member* member = state_->find(worker)) state_->count_failing(*member, 0);
}

Fleet::DueProbes Fleet::take_due_probes() {
  const std::lock_guard lock(state_->mutex);
  const Instant now = state_->clock.now();
  DueProbes due{{}, now + state_->options.probe_interval};
  for (Member& member : state_->members) {
    if (member.is_probed) continue;
    if (member.next_probe <= now) {
      member.is_probed = true;
      due.workers.push_back(member.spec);
    } else {
      due.next = std::min(due.next, member.next_probe);
    }
  }
  return due;
}

void Fleet::on_probe_sooner(std::function<void()> wake) {
  const std::lock_guard lock(state_->mutex);
  state_->probe_sooner = std::move(wake);
}

void Fleet::apply_probe(const WorkerSpec& spec, const Probe& probe) {
  Effects effects;
  {
    const std::lock_guard lock(state_->mutex);
    Member* member = state_->find(spec);
    if (member == nullptr) return;
    member->is_probed = false;
    if (probe.health.ok()) {
      state_->probe_answered(*member, probe, effects);
    } else {
      state_->probe_failed(*member, probe, effects);
    }
    state_->settle(*member, effects);
    state_->publish();
  }
  state_->act(effects);
}

void Fleet::apply_load(const WorkerSpec& spec, const EngineLoad& load) {
  Effects effects;
  {
    const std::lock_guard lock(state_->mutex);
    Member* member = state_->find(spec);
    if (member == nullptr) return;
    set_load(member->view, member->standing, load);
    state_->settle(*member, effects);
    state_->publish();
  }
  state_->act(effects);
}

}  // namespace sightline::fleet
