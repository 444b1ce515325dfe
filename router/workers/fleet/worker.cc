// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/worker.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "router/engine/families/families.h"

namespace sightline::fleet {

std::string_view name_of(WorkerState state) {
  switch (state) {
    case WorkerState::Starting:
      return "starting";
    case WorkerState::Ready:
      return "ready";
    case WorkerState::Unverified:
      return "unverified";
    case WorkerState::Excluded:
      return "excluded";
    case WorkerState::Draining:
      return "draining";
    case WorkerState::Suspect:
      return "suspect";
    case WorkerState::Down:
      return "down";
  }
  return "down";
}

LogLevel level_of(WorkerState state) {
  const bool is_normal = state == WorkerState::Ready || state == WorkerState::Starting ||
                         state == WorkerState::Draining;
  return is_normal ? LogLevel::Info : LogLevel::Warn;
}

bool Worker::serves(std::string_view model) const {
  // A worker whose models are not known yet may serve any.
  return models.empty() || std::any_of(models.begin(), models.end(),
                                       [model](const auto& served) { return served.id == model; });
}

const Rank* Worker::find(CacheId cache) const {
  const auto found = std::find_if(ranks.begin(), ranks.end(), [cache](const Rank& rank) {
    return rank.feed && rank.feed->cache == cache;
  });
  return found == ranks.end() ? nullptr : &*found;
}

const Feed* Worker::first_feed() const {
  const auto found = std::find_if(ranks.begin(), ranks.end(),
                                  [](const Rank& rank) { return rank.feed.has_value(); });
  return found == ranks.end() ? nullptr : &*found->feed;
}

Worker view_of(const contract::WorkerSpec& spec) {
  Worker view;
  view.spec = spec;
  view.block_size = BlockSize(spec.block_size);
  return view;
}

std::vector<FoundRank> found_ranks(const Worker& view) {
  std::vector<FoundRank> ranks;
  for (const Rank& rank : view.ranks) {
    FoundRank& found = ranks.emplace_back(FoundRank{.number = rank.number});
    if (rank.feed) found.events = rank.feed->endpoints;
  }
  return ranks;
}

void set_load(Worker& view, const ServerLoad& load) {
  view.running = load.running;
  view.waiting = load.waiting;
  view.kv_usage = load.kv_usage;
  for (Rank& rank : view.ranks) {
    // The metrics of a single rank may carry any number.
    RankLoad own{rank.number, load.running, load.waiting, load.kv_usage,
                 load.ranks.size() == 1 ? load.ranks.front().gpu_blocks : 0};
    if (view.has_several_ranks()) {
      const auto told = std::find_if(load.ranks.begin(), load.ranks.end(),
                                     [&rank](const auto& r) { return r.number == rank.number; });
      own = told == load.ranks.end() ? RankLoad{} : *told;
    }
    rank.running = own.running;
    rank.waiting = own.waiting;
    rank.kv_usage = own.kv_usage;
    rank.gpu_blocks = own.gpu_blocks;
    rank.gpu_block_size = load.block_size;
  }
  view.block_size.take_from_server(load.block_size);
}

void take_block_size(Worker& view, const AnnouncedBlockSize& latest) {
  std::vector<AnnouncedBlockSize> ranks;
  std::uint32_t tokens = latest.tokens;
  for (const Rank& rank : view.ranks) {
    // A feed that begins again has no size. Another rank may still have one.
    if (!rank.feed) continue;
    ranks.push_back(rank.feed->block_size);
    if (tokens == 0) tokens = ranks.back().tokens;
  }
  if (tokens == 0) return view.block_size.forget_events();
  view.block_size.take_from_events(tokens, ranks);
}

void set_models(Worker& view, const std::vector<ServedModel>& models) {
  view.models = models;
  view.max_model_len = 0;
  for (const ServedModel& model : models) {
    // The context of adapters is that of their base model.
    if (!model.parent.empty()) continue;
    view.max_model_len = std::max(view.max_model_len, model.max_model_len);
  }
}

namespace {

// The owner that its models name shows the kind of server.
std::string family_conflict(const Worker& worker) {
  for (const ServedModel& model : worker.models) {
    const family::Family* owner = families::owner_of(model.owner);
    // An unknown owner may be any kind of server.
    if (owner == nullptr || owner == &families::family_of(worker.spec.family)) continue;
    return "it reports that it is " + std::string(owner->title()) +
           ", but this worker has family=" + std::string(name_of(worker.spec.family)) +
           ": set family=" + std::string(owner->name());
  }
  return {};
}

}  // namespace

std::string conflict_of(const Worker& worker, const Observations& seen) {
  if (const auto& conflict = worker.block_size.conflict()) return reason_of(*conflict);
  if (!seen.rank_conflict.empty()) return seen.rank_conflict;
  return family_conflict(worker);
}

namespace {

// Decides how far the blocks of a worker that takes requests count.
WorkerStatus judge_blocks(const Worker& worker, const Observations& seen,
                          std::uint32_t common_block_size) {
  std::string conflict = conflict_of(worker, seen);
  if (!conflict.empty()) return {WorkerState::Excluded, std::move(conflict)};
  const Feed* first = worker.first_feed();
  if (first == nullptr) return {WorkerState::Unverified, seen.unknown_events};
  const bool has_announced =
      std::any_of(worker.ranks.begin(), worker.ranks.end(),
                  [](const Rank& rank) { return rank.feed && rank.feed->block_size.tokens > 0; });
  const bool is_verified =
      std::any_of(worker.ranks.begin(), worker.ranks.end(),
                  [](const Rank& rank) { return rank.feed && rank.feed->unverified.empty(); });
  if (!is_verified) return {WorkerState::Unverified, first->unverified};
  if (!has_announced && !seen.unannounced.empty()) {
    return {WorkerState::Unverified, seen.unannounced};
  }
  if (worker.block_size.tokens() == 0) {
    return {WorkerState::Unverified,
            "the engine does not report its block size, and no KV event has shown it yet"};
  }
  std::string unlike = reason_unlike_most(worker.block_size, common_block_size);
  if (!unlike.empty()) return {WorkerState::Excluded, std::move(unlike)};
  if (!seen.name_conflict.empty()) return {WorkerState::Excluded, seen.name_conflict};
  const auto incomplete =
      std::find_if(worker.ranks.begin(), worker.ranks.end(),
                   [](const Rank& rank) { return rank.feed && !rank.feed->incomplete.empty(); });
  return {WorkerState::Ready, incomplete == worker.ranks.end() ? "" : incomplete->feed->incomplete};
}

// Silent or suspect, and not kept routed.
bool is_left_out(const Observations& seen) {
  return (seen.is_silent || seen.is_suspect) && !(seen.is_slow && seen.stays_routed);
}

// The ranks share one URL, so they end together.
bool is_drained_by_agent(const Worker& worker) {
  return std::any_of(worker.ranks.begin(), worker.ranks.end(),
                     [](const Rank& rank) { return rank.feed && rank.feed->draining; });
}

std::string joined(const std::string& reason, const std::string& more) {
  return reason.empty() || more.empty() ? reason + more : reason + "; " + more;
}

}  // namespace

WorkerStatus judge(const Worker& worker, const Observations& seen,
                   std::uint32_t common_block_size) {
  if (!seen.was_alive) {
    return {WorkerState::Starting, "has not answered yet: " + seen.failure};
  }
  if (!seen.is_alive) return {WorkerState::Down, seen.failure};
  if (seen.is_silent && is_left_out(seen)) return {WorkerState::Down, seen.failure};
  // A worker that drains is shown as draining, even if it is suspect.
  if (worker.spec.drain) return {WorkerState::Draining, "drain=true: takes no new requests"};
  if (is_drained_by_agent(worker)) {
    return {WorkerState::Draining, "its agent was asked to drain it: takes no new requests"};
  }
  if (seen.is_asleep) {
    return {WorkerState::Draining, "it sleeps (/is_sleeping): takes no requests until it is woken"};
  }
  if (is_left_out(seen)) return {WorkerState::Suspect, seen.failure};
  if (!seen.wedged.empty()) return {WorkerState::Suspect, seen.wedged};
  WorkerStatus status = judge_blocks(worker, seen, common_block_size);
  // It is routed only because most workers are slow too.
  if (seen.is_silent || seen.is_suspect) {
    status.reason = joined(status.reason,
                           seen.failure + ": still gets requests, because most workers are slow");
  }
  status.reason = joined(status.reason, seen.refused_calls);
  return status;
}

bool is_same_worker(contract::WorkerSpec a, const contract::WorkerSpec& b) {
  a.drain = b.drain;
  a.api_key_file = b.api_key_file;
  return a == b;
}

}  // namespace sightline::fleet
