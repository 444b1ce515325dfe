// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/fleet.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/published.h"

#include "router/workers/fleet/effects.h"

namespace sightline::fleet {

using contract::WorkerSpec;

class Fleet::State {
 public:
  State(Options with, FleetListeners told, runtime::Metrics& counts, const Clock& time)
      : options(with), listeners(std::move(told)), metrics(counts), clock(time) {}

  const Options options;
  const FleetListeners listeners;
  runtime::Metrics& metrics;
  const Clock& clock;
  Published<FleetSnapshot> snapshot{std::make_shared<const FleetSnapshot>()};
  std::atomic<std::size_t> failing_workers = 0;  // spares report_success the lock

  Mutex mutex;
  std::vector<Member> members SL_GUARDED_BY(mutex);
  std::uint64_t revision SL_GUARDED_BY(mutex) = 0;
  std::uint32_t next_engine SL_GUARDED_BY(mutex) = 0;
  std::function<void()> probe_sooner SL_GUARDED_BY(mutex);
  // A published worker, or the list, since publish().
  bool is_changed SL_GUARDED_BY(mutex) = true;
  SlowShare share SL_GUARDED_BY(mutex);
  bool slow_stay_routed SL_GUARDED_BY(mutex) = false;

  Member* find(std::string_view name) SL_REQUIRES(mutex) {
    const auto found = std::find_if(members.begin(), members.end(),
                                    [name](const Member& m) { return m.spec.name == name; });
    return found == members.end() ? nullptr : &*found;
  }

  // The member that a probe was taken for, unless it was replaced since.
  Member* find(const WorkerSpec& spec) SL_REQUIRES(mutex) {
    Member* member = find(spec.name);
    return member != nullptr && is_same_engine(spec, member->spec) ? member : nullptr;
  }

  static void drop_engines(Member& member, Effects& effects) {
    for (const EngineEndpoints& engine : member.view.engines) {
      effects.removed.push_back(engine.engine);
    }
    member.view.engines.clear();
    member.seen.block_size_events = 0;
    member.view.block_size = member.view.block_size_configured;
    member.view.is_block_size_guessed = member.seen.block_size_explicit == 0;
  }

  void learn_rank_conflict(Member& member, std::string conflict) const {
    if (member.seen.rank_conflict == conflict) return;
    member.seen.rank_conflict = std::move(conflict);
    if (member.seen.rank_conflict.empty()) return;
    metrics.counter(contract::kRankMismatchTotal, {member.spec.name}).add();
  }

  void set_engines(Member& member, std::vector<EngineEndpoints> engines, Effects& effects)
      SL_REQUIRES(mutex) {
    if (same_endpoints(member.view.engines, engines)) return;
    drop_engines(member, effects);
    for (EngineEndpoints& engine : engines) {
      begin_to_follow(engine, CacheId{next_engine++}, member.view);
      effects.ready.push_back(engine);
    }
    member.view.engines = std::move(engines);
  }

  // Judges the member, and has it published where it changed, with any change of `view`.
  void settle(Member& member, Effects& effects) SL_REQUIRES(mutex) {
    if (share.count(member)) keep_slow(effects);
    const Ballot ballot = ballot_of(member.view, member.seen);
    if (std::exchange(member.ballot, ballot) != ballot || !member.published) vote(effects);
    settle_one(member, effects);
  }

  // Takes over what the votes say of all; those are judged anew for which that is news.
  void vote(Effects& effects) SL_REQUIRES(mutex) {
    std::vector<Worker*> sound;
    for (Member& m : members) {
      if (m.ballot.is_sound) sound.push_back(&m.view);
    }
    guess_block_sizes(sound);
    const std::uint32_t common = common_block_size(sound);
    for (Member& m : members) {
      const bool is_same = std::exchange(m.seen.block_size_common, common) == common &&
                           m.published && m.published->block_size == m.view.block_size;
      if (!is_same) settle_one(m, effects);
    }
  }

  // After the share of slow workers may have changed.
  void keep_slow(Effects& effects) SL_REQUIRES(mutex) {
    const bool stay = share.is_large();
    metrics.gauge(contract::kWorkersKeptRouted).set(stay ? static_cast<double>(share.slow) : 0);
    if (std::exchange(slow_stay_routed, stay) == stay) return;
    effects.tell(LogLevel::Warn,
                 stay ? "most workers do not answer in time: they stay routed"
                      : "workers that do not answer in time are left out again",
                 {{"slow", share.slow}, {"workers", share.routed}});
    for (Member& m : members) {
      m.seen.stays_routed = stay;
      if (m.published) settle_one(m, effects);
    }
  }

  void settle_one(Member& member, Effects& effects) SL_REQUIRES(mutex) {
    member.ballot = ballot_of(member.view, member.seen);
    WorkerStatus status = judge(member.view, member.seen);
    const bool is_new = !member.published;
    if (is_new || status.state != member.view.state || status.reason != member.view.reason) {
      if (is_new || status.state != member.view.state) set_state_metric(member, status.state);
      member.view.state = status.state;
      member.view.reason = std::move(status.reason);
      member.view.revision = revision + 1;
      effects.tell(level_of(member.view.state), "worker state",
                   {{"worker", member.spec.name},
                    {"state", name_of(member.view.state)},
                    {"reason", member.view.reason}});
    }
    if (!is_new && *member.published == member.view) return;
    member.published = std::make_shared<const Worker>(member.view);
    is_changed = true;
  }

  void set_state_metric(const Member& member, WorkerState now) const {
    for (const WorkerState state : kWorkerStates) {
      metrics.gauge(contract::kWorkerState, {member.spec.name, name_of(state)})
          .set(state == now ? 1 : 0);
    }
  }

  void publish() SL_REQUIRES(mutex) {
    if (!std::exchange(is_changed, false)) return;
    auto next = std::make_shared<FleetSnapshot>();
    next->revision = ++revision;
    for (const Member& member : members) next->workers.push_back(member.published);
    snapshot.publish(std::move(next));
  }

  void act(const Effects& effects) const SL_EXCLUDES(mutex) {
    for (const Effects::Line& line : effects.lines) log(line.level, line.message, line.fields);
    for (const CacheId engine : effects.removed) {
      if (listeners.engine_removed) listeners.engine_removed(engine);
    }
    for (const EngineEndpoints& engine : effects.ready) {
      if (listeners.engine_ready) listeners.engine_ready(engine);
    }
    for (const std::string& worker : effects.gone_workers) metrics.remove_worker(worker);
  }

  void replace_members(const std::vector<WorkerSpec>& workers, Effects& effects)
      SL_REQUIRES(mutex) {
    std::vector<Member> next;
    for (const WorkerSpec& spec : workers) {
      Member* old = find(spec.name);
      if (old != nullptr && is_same_engine(old->spec, spec)) {
        old->spec = spec;
        old->seen.is_drained = spec.drain;
        next.push_back(std::move(*old));
        old->spec.name.clear();
      } else {
        next.push_back(new_member(spec, clock.now()));
      }
    }
    members.swap(next);
    for (Member& old : next) {
      if (old.spec.name.empty()) continue;
      drop_engines(old, effects);
      forget_failures(old);
      share.leave(old);
      if (find(old.spec.name) != nullptr) continue;
      effects.gone_workers.push_back(old.spec.name);
      effects.tell(LogLevel::Info, "worker removed", {{"worker", old.spec.name}});
    }
    for (Member& member : members) {
      member.seen.stays_routed = slow_stay_routed;
      share.count(member);
    }
    keep_slow(effects);
    vote(effects);
    for (Member& member : members) settle_one(member, effects);
    is_changed = true;
  }

  // After `failed_requests` was `before`.
  void count_failing(const Member& member, std::uint32_t before) SL_REQUIRES(mutex) {
    if (before == 0 && member.failed_requests != 0) ++failing_workers;
    if (before != 0 && member.failed_requests == 0) --failing_workers;
  }

  void forget_failures(Member& member) SL_REQUIRES(mutex) {
    count_failing(member, std::exchange(member.failed_requests, 0));
  }

  // When the last event of the worker came.
  [[nodiscard]] Instant last_event(std::string_view name) const SL_EXCLUDES(mutex) {
    Instant last{};
    const auto worker = snapshot.read()->find(name);
    if (!worker || !listeners.last_event) return last;
    for (const EngineEndpoints& engine : worker->engines) {
      last = std::max(last, listeners.last_event(engine.engine));
    }
    return last;
  }

  void probe_answered(Member& member, const Probe& probe, Effects& effects) SL_REQUIRES(mutex) {
    const Instant now = clock.now();
    note_life(member, now, options);
    note_refused_calls(member, probe);
    const AdapterNews adapters = take_facts(member.view, probe);
    if (adapters == AdapterNews::Full) {
      metrics.counter(contract::kLimitHitsTotal, {content::kAdaptersLimit}).add();
    }
    if (adapters != AdapterNews::None) {
      drop_engines(member, effects);  // learned anew, below
      effects.tell(LogLevel::Warn, text_of(adapters), {{"worker", member.spec.name}});
    }
    if (std::optional<Discovery> found = news_of(member, probe, now, options)) {
      set_ranks(member.view, found->ranks);
      learn_rank_conflict(member, std::move(found->rank_conflict));
      member.seen.unknown_events = std::move(found->reason);
      set_engines(member, std::move(found->engines), effects);
    }
    take_load(member.view, member.seen, probe);
  }

  // Changes what is known of an engine; `change` says whether it did.
  void change(CacheId engine, const auto& change) {
    Effects effects;
    {
      const MutexLock lock(mutex);
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
    member.seen.block_size_events = member.view.block_size = told;
    member.view.is_block_size_guessed = false;
    if (!engine.has_several_block_sizes && (configured == 0 || configured == told)) return;
    metrics.counter(contract::kBlockSizeMismatchTotal, {member.spec.name}).add();
    const bool is_harmless = conflict_of(member.view, member.seen).empty();
    effects.tell(is_harmless ? LogLevel::Info : LogLevel::Warn,
                 "the events tell another block size",
                 {{"worker", member.spec.name}, {"events", told}, {"configured", configured}});
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
    const MutexLock lock(state_->mutex);
    state_->replace_members(workers, effects);
    state_->publish();
  }
  state_->act(effects);
}

void Fleet::set_block_size_from_events(CacheId engine, std::uint32_t tokens, bool has_several) {
  state_->change(engine, [&](Member& member, EngineEndpoints& endpoints, Effects& effects) {
    if (!set_block_size(endpoints, tokens, has_several)) return false;
    state_->learn_block_size(member, endpoints, effects);
    return true;
  });
}

void Fleet::set_event_health(CacheId engine, std::string_view unverified, EarlierBlocks earlier) {
  state_->change(engine, [&](Member& member, EngineEndpoints& endpoints, Effects& effects) {
    if (!fleet::set_event_health(endpoints, unverified, earlier)) return false;
    if (!member.view.has_several_ranks()) return true;
    // The worker's own line says nothing while another rank is well.
    effects.tell(unverified.empty() ? LogLevel::Info : LogLevel::Warn, "rank state",
                 {{"worker", member.spec.name},
                  {"rank", endpoints.rank},
                  {"state", unverified.empty() ? "ready" : "unverified"},
                  {"reason", unverified.empty() ? endpoints.incomplete : unverified}});
    return true;
  });
}

void Fleet::report_failure(std::string_view worker, const Error& error) {
  const Instant last_event = state_->last_event(worker);
  Effects effects;
  std::function<void()> wake;
  {
    const MutexLock lock(state_->mutex);
    Member* member = state_->find(worker);
    if (member == nullptr) return;
    const Instant now = state_->clock.now();
    const bool had_event = last_event > now - 2 * state_->options.probe_interval;
    const std::uint32_t before = member->failed_requests;
    const RequestBlame blame = note_failed_request(
        *member, error, {now, had_event || member->view.life->raised_lately()}, state_->options);
    if (blame == RequestBlame::None) return;
    state_->count_failing(*member, before);
    state_->settle(*member, effects);
    state_->publish();
    wake = state_->probe_sooner;
  }
  state_->act(effects);
  if (wake) wake();
}

void Fleet::report_success(std::string_view worker) {
  if (state_->failing_workers == 0) return;
  const MutexLock lock(state_->mutex);
  if (Member* member = state_->find(worker)) state_->forget_failures(*member);
}

Fleet::DueProbes Fleet::take_due_probes() {
  const MutexLock lock(state_->mutex);
  const Instant now = state_->clock.now();
  DueProbes due{{}, now + state_->options.probe_interval};
  for (Member& member : state_->members) {
    if (member.is_probed) continue;
    if (member.next_probe <= now) {
      member.is_probed = true;
      const Instant before = std::exchange(member.probe_began, now);
      member.view.life->begin_period(now - before < state_->options.probe_interval);
      due.workers.push_back(member.spec);
    } else {
      due.next = std::min(due.next, member.next_probe);
    }
  }
  return due;
}

void Fleet::on_probe_sooner(std::function<void()> wake) {
  const MutexLock lock(state_->mutex);
  state_->probe_sooner = std::move(wake);
}

void Fleet::apply_probe(const WorkerSpec& spec, const Probe& probe) {
  const Instant last_event = probe.health.ok() ? Instant{} : state_->last_event(spec.name);
  Effects effects;
  {
    const MutexLock lock(state_->mutex);
    Member* member = state_->find(spec);
    if (member == nullptr) return;
    member->is_probed = false;
    if (probe.health.ok()) {
      state_->probe_answered(*member, probe, effects);
    } else {
      const bool had_event = last_event > member->probe_began;
      const Moment moment{state_->clock.now(), had_event || member->view.life->raised()};
      if (note_failed_probe(*member, probe, moment, state_->options)) {
        state_->drop_engines(*member, effects);
      }
    }
    state_->settle(*member, effects);
    state_->publish();
  }
  state_->act(effects);
}

void Fleet::apply_load(const WorkerSpec& spec, const EngineLoad& load) {
  Effects effects;
  {
    const MutexLock lock(state_->mutex);
    Member* member = state_->find(spec);
    if (member == nullptr) return;
    set_load(member->view, member->seen, load);
    state_->settle(*member, effects);
    state_->publish();
  }
  state_->act(effects);
}

}  // namespace sightline::fleet
