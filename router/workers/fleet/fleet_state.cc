// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/fleet_state.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "common/base/log.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/metrics_workers.h"

#include "router/workers/fleet/served.h"

namespace sightline::fleet {

using contract::WorkerSpec;

FleetMember* Fleet::State::find(std::string_view name) {
  const auto found = std::find_if(members.begin(), members.end(), [name](const FleetMember& m) {
    return m.view.spec.name == name;
  });
  return found == members.end() ? nullptr : &*found;
}

FleetMember* Fleet::State::find(const WorkerSpec& spec) {
  FleetMember* member = find(spec.name);
  return member != nullptr && is_same_worker(spec, member->view.spec) ? member : nullptr;
}

void Fleet::State::drop_feeds(FleetMember& member, Effects& effects) {
  for (Rank& rank : member.view.ranks) {
    if (rank.feed) effects.removed.push_back(rank.feed->cache);
    rank.feed.reset();
  }
  // The blocks of the feeds are gone, so sizes that their events proved are gone too.
  member.view.block_size.forget_events();
}

void Fleet::State::learn_rank_conflict(FleetMember& member, const std::string& conflict) const {
  const bool is_news = std::exchange(member.seen.rank_conflict, conflict) != conflict;
  // A repeated report of the same contradiction counts once.
  if (!is_news || conflict.empty()) return;
  metrics.counter(contract::kRankMismatchTotal, {member.view.spec.name}).add();
}

void Fleet::State::set_ranks(FleetMember& member, const std::vector<FoundRank>& found,
                             Effects& effects) {
  // All feeds end together: events of a worker with another number of ranks are assigned in another
  // way.
  const bool goes_on = same_events(found_ranks(member.view), found);
  if (!goes_on) drop_feeds(member, effects);
  std::vector<Rank>& before = member.view.ranks;
  std::vector<Rank> ranks;
  for (const FoundRank& told : found) {
    const auto old = std::find_if(before.begin(), before.end(),
                                  [&](const Rank& rank) { return rank.number == told.number; });
    if (old != before.end()) {
      ranks.push_back(*old);
    } else {
      ranks.push_back(
          {.number = told.number, .load = book.open({member.view.spec.name, told.number})});
    }
    Rank& rank = ranks.back();
    if (goes_on || !told.events) continue;
    // A new feed gets a new id, so facts of the old one can never apply to it.
    rank.feed = Feed{.cache = CacheId{next_cache++},
                     .endpoints = *told.events,
                     .unverified = std::string(reason_of(operations::FeedHealth::Waiting)),
                     .copies = member.view.spec.copies,
                     .adapters = member.view.adapters.meanings()};
    effects.ready.push_back(rank.feed->cache);
  }
  before = std::move(ranks);
}

void Fleet::State::settle(FleetMember& member, Effects& effects) {
  // The order matters: the share decides who stays routed, block sizes decide who is excluded, and
  // names count only workers that may take requests.
  if (share.count(member)) keep_slow(effects);
  const BlockSizeEvidence before = std::exchange(member.evidence, evidence_of(member));
  if (before != member.evidence || !member.published) compare_block_sizes(effects);
  settle_one(member, effects);
  settle_renamed(effects);
}

void Fleet::State::settle_renamed(Effects& effects) {
  if (!std::exchange(is_name_changed, false)) return;
  adapter_names = std::make_shared<const AdapterNames>(meanings.adapters());
  served_revision = revision + 1;
  is_changed = true;
  for (FleetMember& m : members) settle_one(m, effects);
}

void Fleet::State::count_names(FleetMember& member, bool counts) {
  const auto& known = member.published;
  // Almost every call ends here.
  if (known && known->models == member.view.models && member.ballot.counts == counts) return;
  Ballot next = ballot_of(member.view.models, counts);
  if (next == member.ballot) return;
  const bool is_complete = std::all_of(members.begin(), members.end(),
                                       [](const FleetMember& m) { return m.view.was_asked; });
  is_name_changed |= meanings.recast(member.ballot, next, is_complete);
  member.ballot = std::move(next);
}

void Fleet::State::compare_block_sizes(Effects& effects) {
  std::vector<BlockSize*> sound;
  std::vector<const BlockSize*> followed;
  for (FleetMember& m : members) {
    if (!m.evidence.is_sound) continue;
    sound.push_back(&m.view.block_size);
    if (m.view.first_feed() != nullptr) followed.push_back(&m.view.block_size);
  }
  known_block_size = block_size_in_force(followed, known_block_size);
  guess_block_sizes(sound, known_block_size);
  std::vector<std::uint32_t> announced;
  for (const BlockSize* size : followed) announced.push_back(size->tokens());
  const std::uint32_t most = common_block_size(announced, known_block_size);
  const bool is_news = std::exchange(block_size_of_most, most) != most;
  is_changed |= is_news;
  for (FleetMember& m : members) {
    // The size may also have changed without a change of the common one.
    const bool is_same = m.published && m.published->block_size == m.view.block_size;
    if (is_news || !is_same) settle_one(m, effects);
  }
}

void Fleet::State::keep_slow(Effects& effects) {
  const bool stay = share.is_large();
  metrics.gauge(contract::kWorkersKeptRouted).set(stay ? static_cast<double>(share.slow) : 0);
  if (std::exchange(slow_stay_routed, stay) == stay) return;
  effects.tell(
      LogLevel::Warn,
      stay ? "most workers do not answer in time: they still get requests"
           : "at least half of the workers answer in time: slow workers get no more requests",
      {{"slow", share.slow}, {"workers", share.routed}});
  for (FleetMember& m : members) {
    m.seen.stays_routed = stay;
    // The state of a new member is decided later.
    if (m.published) settle_one(m, effects);
  }
}

void Fleet::State::settle_one(FleetMember& member, Effects& effects) {
  member.evidence = evidence_of(member);
  WorkerStatus status = judge(member.view, member.seen, block_size_of_most);
  count_names(member, may_take_requests(status.state));
  std::string conflict = meanings.conflict_of(member.ballot);
  // The first decision may change the names, and the names may change the state.
  if (std::exchange(member.seen.name_conflict, std::move(conflict)) != member.seen.name_conflict) {
    status = judge(member.view, member.seen, block_size_of_most);
  }
  const bool is_new = !member.published;
  if (is_new || status.state != member.view.state || status.reason != member.view.reason) {
    if (is_new || status.state != member.view.state) set_state_metric(member, status.state);
    member.view.state = status.state;
    member.view.reason = std::move(status.reason);
    member.view.revision = revision + 1;
    effects.tell(level_of(member.view.state), "worker state",
                 {{"worker", member.view.spec.name},
                  {"state", name_of(member.view.state)},
                  {"reason", member.view.reason}});
  }
  // An unchanged worker keeps its pointer, so readers can compare snapshots cheaply.
  if (!is_new && *member.published == member.view) return;
  if (is_new || !serve_alike(*member.published, member.view)) served_revision = revision + 1;
  member.published = std::make_shared<const Worker>(member.view);
  is_changed = true;
}

void Fleet::State::set_state_metric(const FleetMember& member, WorkerState now) const {
  for (const WorkerState state : kWorkerStates) {
    metrics.gauge(contract::kWorkerState, {member.view.spec.name, name_of(state)})
        .set(state == now ? 1 : 0);
  }
}

void Fleet::State::publish() {
  if (!std::exchange(is_changed, false)) return;
  auto next = std::make_shared<FleetSnapshot>();
  next->revision = ++revision;
  next->served_revision = served_revision;
  next->block_size = block_size_of_most;
  next->adapter_names = adapter_names;
  for (const FleetMember& member : members) next->workers.push_back(member.published);
  snapshot.publish(std::move(next));
}

void Fleet::State::act(const Effects& effects) const {
  for (const Effects::Line& line : effects.lines) log(line.level, line.message, line.fields);
  // Removed feeds come first, so a new feed can bind the address of a removed one.
  for (const CacheId cache : effects.removed) {
    if (listeners.feed_removed) listeners.feed_removed(cache);
  }
  const auto now = snapshot.read();
  for (const CacheId cache : effects.ready) {
    const auto worker = now->find(cache);
    if (worker && listeners.feed_ready) listeners.feed_ready(*worker, *worker->find(cache));
  }
  for (const std::string& worker : effects.gone_workers) metrics.remove_worker(worker);
}

void Fleet::State::replace_members(const std::vector<WorkerSpec>& workers, Effects& effects) {
  std::unordered_map<std::string, FleetMember*> known;
  for (FleetMember& member : members) known[member.view.spec.name] = &member;
  std::unordered_set<std::string_view> wanted;
  std::vector<FleetMember> next;
  for (const WorkerSpec& spec : workers) {
    wanted.insert(spec.name);
    const auto found = known.find(spec.name);
    FleetMember* old = found == known.end() ? nullptr : found->second;
    if (old != nullptr && is_same_worker(old->view.spec, spec)) {
      // Only drain and key may differ, so the member continues.
      old->view.spec = spec;
      next.push_back(std::move(*old));
      // Marks the moved member for the loop below.
      old->view.spec.name.clear();
    } else {
      next.push_back(new_member(spec, clock.now(), book));
      metrics.begin_worker(contract::kWorkersMetrics, spec.name);
    }
  }
  members.swap(next);
  for (FleetMember& old : next) {
    if (old.view.spec.name.empty()) continue;
    // Feeds, counts and names of a member that left must not count any more.
    drop_feeds(old, effects);
    forget_failures(old);
    share.leave(old);
    is_name_changed |= meanings.recast(old.ballot, {}, false);
    // A changed worker has its name still, and its metrics continue.
    if (wanted.contains(old.view.spec.name)) continue;
    effects.gone_workers.push_back(old.view.spec.name);
    effects.tell(LogLevel::Info, "worker removed", {{"worker", old.view.spec.name}});
  }
  for (FleetMember& member : members) {
    member.seen.stays_routed = slow_stay_routed;
    share.count(member);
  }
  keep_slow(effects);
  compare_block_sizes(effects);
  // Members are judged only when all of them are in the list.
  for (FleetMember& member : members) settle_one(member, effects);
  settle_renamed(effects);
  is_changed = true;
  served_revision = revision + 1;
}

void Fleet::State::count_failing(const FleetMember& member, std::uint32_t before) {
  if (before == 0 && member.failed_requests != 0) ++failing_workers;
  if (before != 0 && member.failed_requests == 0) --failing_workers;
}

void Fleet::State::forget_failures(FleetMember& member) {
  count_failing(member, std::exchange(member.failed_requests, 0));
}

Instant Fleet::State::last_event(std::string_view name) const {
  Instant last{};
  const auto worker = snapshot.read()->find(name);
  if (!worker || !listeners.last_event) return last;
  for (const Rank& rank : worker->ranks) {
    if (rank.feed) last = std::max(last, listeners.last_event(rank.feed->cache));
  }
  return last;
}

void Fleet::State::probe_answered(FleetMember& member, const Probe& probe, Effects& effects) {
  const Instant now = clock.now();
  note_life(member, now, options);
  note_refused_calls(member, probe);
  const AdapterNews adapters = take_server_facts(member.view, probe);
  if (adapters == AdapterNews::Full) {
    metrics.counter(contract::kLimitHitsTotal, {content::kAdaptersLimit}).add();
  }
  if (adapters != AdapterNews::None) {
    drop_feeds(member, effects);  // read again below
    effects.tell(LogLevel::Warn, text_of(adapters), {{"worker", member.view.spec.name}});
  }
  if (std::optional<Discovery> found = news_of(member, probe, now, options)) {
    learn_rank_conflict(member, found->rank_conflict);
    member.seen.unknown_events = std::move(found->reason);
    set_ranks(member, found->ranks, effects);
  }
  take_load(member.view, probe);
  if (!probe.load.ok()) return;
  note_generated(member, *probe.load);
  member.view.load_read->set(now);
}

void Fleet::State::take_block_size(FleetMember& member, const AnnouncedBlockSize& latest,
                                   Effects& effects) const {
  const BlockSize& size = member.view.block_size;
  fleet::take_block_size(member.view, latest);
  if (latest.tokens == 0) return;
  if (!size.is_contradicted_by(latest)) return;
  metrics.counter(contract::kBlockSizeMismatchTotal, {member.view.spec.name}).add();
  // A contradiction that does not exclude the worker is only information.
  const bool is_harmless = conflict_of(member.view, member.seen).empty();
  effects.tell(is_harmless ? LogLevel::Info : LogLevel::Warn, "KV events have another block size",
               {{"worker", member.view.spec.name},
                {"events", latest.tokens},
                {"configured", size.configured()}});
}

void Fleet::State::tell_rank(const FleetMember& member, const Rank& rank, Effects& effects) {
  if (!member.view.has_several_ranks()) return;
  const std::string& unverified = rank.feed->unverified;
  const bool is_ready = unverified.empty();
  effects.tell(is_ready ? LogLevel::Info : LogLevel::Warn, "rank state",
               {{"worker", member.view.spec.name},
                {"rank", rank.number},
                {"state", is_ready ? "ready" : "unverified"},
                {"reason", is_ready ? rank.feed->incomplete : unverified}});
}

}  // namespace sightline::fleet
