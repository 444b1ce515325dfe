// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/fleet.h"

#include <algorithm>
#include <utility>

#include "common/contract/metrics_workers.h"

#include "router/workers/fleet/fleet_state.h"

namespace sightline::fleet {

using contract::WorkerSpec;

Fleet::Fleet(Options options, FleetListeners listeners, runtime::Metrics& metrics,
             const Clock& clock)
    : state_(std::make_unique<State>(std::move(options), std::move(listeners), metrics, clock)) {}
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

void Fleet::take_facts(CacheId cache, const operations::CacheFacts& facts) {
  state_->change(cache, [&](FleetMember& member, Rank& rank, Effects& effects) {
    const FeedNews news = fleet::take_facts(*rank.feed, facts);
    if (news.block_size) state_->take_block_size(member, rank.feed->block_size, effects);
    if (news.health) State::tell_rank(member, rank, effects);
    return news.block_size || news.health;
  });
}

void Fleet::refuse_feed(CacheId cache, std::string_view reason) {
  state_->change(cache, [&](FleetMember& member, Rank& rank, Effects& effects) {
    const bool is_news = refuse(*rank.feed, reason);
    if (is_news) State::tell_rank(member, rank, effects);
    effects.tell(LogLevel::Error, "cannot read the KV events of a worker",
                 {{"worker", member.view.spec.name}, {"rank", rank.number}, {"error", reason}});
    return is_news;
  });
}

LoadBook& Fleet::load_book() { return state_->book; }

void Fleet::report_failure(std::string_view worker, const Error& error) {
  // Read before the lock is taken, because it calls a listener.
  const Instant last_event = state_->last_event(worker);
  Effects effects;
  std::function<void()> wake;
  {
    const MutexLock lock(state_->mutex);
    FleetMember* member = state_->find(worker);
    if (member == nullptr) return;
    const Instant now = state_->clock.now();
    // Lately means within two probe intervals.
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
  // Almost all requests succeed while no worker fails. They take no lock then.
  if (state_->failing_workers == 0) return;
  const MutexLock lock(state_->mutex);
  if (FleetMember* member = state_->find(worker)) state_->forget_failures(*member);
}

Fleet::DueProbes Fleet::take_due_probes(std::size_t most) {
  const MutexLock lock(state_->mutex);
  const Instant now = state_->clock.now();
  DueProbes due{{}, now + state_->options.probe_interval};
  std::vector<FleetMember*> waiting;
  for (FleetMember& member : state_->members) {
    if (member.is_probed) continue;
    if (member.next_probe <= now) {
      waiting.push_back(&member);
    } else {
      due.next = std::min(due.next, member.next_probe);
    }
  }
  if (waiting.size() > most) {
    // The longest waiting ones first, so every worker is probed.
    std::stable_sort(
        waiting.begin(), waiting.end(),
        [](const FleetMember* a, const FleetMember* b) { return a->next_probe < b->next_probe; });
    waiting.resize(most);
  }
  for (FleetMember* member : waiting) {
    member->is_probed = true;
    const Instant before = std::exchange(member->probe_began, now);
    member->view.life->begin_period(now - before < state_->options.probe_interval);
    due.workers.push_back(member->view.spec);
  }
  return due;
}

void Fleet::on_probe_sooner(std::function<void()> wake) {
  const MutexLock lock(state_->mutex);
  state_->probe_sooner = std::move(wake);
}

void Fleet::apply_probe(const WorkerSpec& spec, const Probe& probe) {
  // Only failed probes need it. It calls a listener, so it comes before the lock.
  const Instant last_event = probe.health.ok() ? Instant{} : state_->last_event(spec.name);
  Effects effects;
  {
    const MutexLock lock(state_->mutex);
    FleetMember* member = state_->find(spec);
    if (member == nullptr) return;
    member->is_probed = false;
    member->view.was_asked = true;
    if (probe.health.ok()) {
      state_->probe_answered(*member, probe, effects);
    } else {
      const bool had_event = last_event > member->probe_began;
      const Sighting moment{state_->clock.now(), had_event || member->view.life->raised()};
      if (note_failed_probe(*member, probe, moment, state_->options)) {
        state_->drop_feeds(*member, effects);
      }
    }
    state_->settle(*member, effects);
    state_->publish();
  }
  state_->act(effects);
}

void Fleet::apply_load(const WorkerSpec& spec, const ServerLoad& load) {
  Effects effects;
  {
    const MutexLock lock(state_->mutex);
    FleetMember* member = state_->find(spec);
    if (member == nullptr) return;
    set_load(member->view, load);
    note_generated(*member, load);
    member->view.load_read->set(state_->clock.now());
    state_->settle(*member, effects);
    state_->publish();
  }
  state_->act(effects);
}

void Fleet::apply_sleep(const WorkerSpec& spec, bool is_asleep) {
  Effects effects;
  {
    const MutexLock lock(state_->mutex);
    FleetMember* member = state_->find(spec);
    // The same report again changes nothing, so no snapshot is made.
    if (member == nullptr || std::exchange(member->seen.is_asleep, is_asleep) == is_asleep) return;
    state_->settle(*member, effects);
    state_->publish();
  }
  state_->act(effects);
}

void Fleet::check_work() {
  Effects effects;
  {
    const MutexLock lock(state_->mutex);
    const Instant now = state_->clock.now();
    for (FleetMember& member : state_->members) {
      const std::uint64_t before = unannounced_blocks(member);
      if (note_work(member, now, state_->options)) state_->settle(member, effects);
      const std::uint64_t blocks = unannounced_blocks(member);
      // A worker that never had unannounced blocks gets no series.
      if (blocks == before && blocks == 0) continue;
      state_->metrics.gauge(contract::kWorkerUnannouncedBlocks, {member.view.spec.name})
          .set(static_cast<double>(blocks));
    }
    state_->publish();
  }
  state_->act(effects);
}

}  // namespace sightline::fleet
