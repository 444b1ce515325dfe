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
  return models.empty() || std::any_of(models.begin(), models.end(),
                                       [model](const auto& served) { return served.id == model; });
}

const EngineEndpoints* Worker::engine_of(std::uint32_t rank) const {
  const auto found = std::find_if(engines.begin(), engines.end(),
                                  [rank](const auto& engine) { return engine.rank == rank; });
  return found == engines.end() ? nullptr : &*found;
}

Worker view_of(const contract::WorkerSpec& spec) {
  Worker view;
  view.name = spec.name;
  view.url = spec.url;
  view.host = spec.host;
  view.port = spec.port;
  view.family = spec.family;
  view.block_size = view.block_size_configured = spec.block_size;
  return view;
}

void set_ranks(Worker& view, const std::vector<std::uint32_t>& numbers) {
  std::vector<Rank> next;
  for (const std::uint32_t number : numbers) {
    const auto old = std::find_if(view.ranks.begin(), view.ranks.end(),
                                  [number](const Rank& rank) { return rank.number == number; });
    next.push_back(old == view.ranks.end() ? Rank{.number = number} : *old);
  }
  view.ranks = std::move(next);
}

void set_load(Worker& view, const Observations& seen, const EngineLoad& load) {
  view.running = load.running;
  view.waiting = load.waiting;
  view.kv_usage = load.kv_usage;
  for (Rank& rank : view.ranks) {
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
  set_told_block_size(view, seen, load.block_size);
}

void set_told_block_size(Worker& view, const Observations& seen, std::uint32_t tokens) {
  if (seen.block_size_explicit != 0 || tokens == 0) return;
  view.block_size_configured = tokens;
  if (seen.block_size_events != 0) return;
  view.block_size = tokens;
  view.is_block_size_guessed = true;
}

bool set_block_size(EngineEndpoints& engine, std::uint32_t block_size, bool has_several) {
  if (block_size == 0) return false;
  const bool is_known =
      engine.block_size_events == block_size && engine.has_several_block_sizes == has_several;
  engine.block_size_events = block_size;
  engine.has_several_block_sizes = has_several;
  return !is_known;
}

void begin_to_follow(EngineEndpoints& engine, CacheId id, const Worker& view) {
  engine.engine = id;
  engine.unverified = "waiting for the first event connection";
  engine.adapters = view.adapters.beliefs();
}

bool set_event_health(EngineEndpoints& engine, std::string_view unverified, EarlierBlocks earlier) {
  std::string_view incomplete;
  if (earlier == EarlierBlocks::Refused) {
    incomplete = "its replay endpoint gives no answer: blocks stored before are unknown";
  } else if (earlier == EarlierBlocks::Missed && engine.replay.empty()) {
    incomplete = "joined late and has no replay endpoint: blocks stored before are unknown";
  }
  const bool is_known = engine.unverified == unverified && engine.incomplete == incomplete;
  engine.unverified = unverified;
  engine.incomplete = incomplete;
  return !is_known;
}

void set_models(Worker& view, const std::vector<ServedModel>& models) {
  view.models = models;
  view.max_model_len = 0;
  for (const ServedModel& model : models) {
    if (model.parent.empty()) view.max_model_len = model.max_model_len;
  }
}

namespace {

// Its models name the engine that serves them.
std::string family_conflict(const Worker& worker) {
  for (const ServedModel& model : worker.models) {
    const family::Family* owner = families::owner_of(model.owner);
    if (owner == nullptr || owner == &families::family_of(worker.family)) continue;
    return "it says that it is " + std::string(owner->title()) +
           ", configured is family=" + std::string(name_of(worker.family)) +
           ": write family=" + std::string(owner->name());
  }
  return {};
}

}  // namespace

std::string conflict_of(const Worker& worker, const Observations& seen) {
  const std::uint32_t configured = seen.block_size_explicit;
  std::uint32_t others = 0;  // of the ranks before
  for (const EngineEndpoints& engine : worker.engines) {
    const std::uint32_t told = engine.block_size_events;
    if (told == 0) continue;
    const std::string tell = "its events tell blocks of " + std::to_string(told) + " tokens, ";
    if (configured != 0 && configured != told) {
      return tell + "configured are " + std::to_string(configured) +
             ": correct or remove block_size";
    }
    if (engine.has_several_block_sizes) {
      return tell + "earlier ones told another size: restart the engine with one block size";
    }
    if (others != 0 && others != told) {
      return tell + "those of another data-parallel rank " + std::to_string(others) +
             ": start all ranks with one --block-size";
    }
    others = told;
  }
  if (!seen.rank_conflict.empty()) return seen.rank_conflict;
  return family_conflict(worker);
}

namespace {

// Of a worker that takes requests: what may be believed about its blocks.
WorkerStatus judge_blocks(const Worker& worker, const Observations& seen) {
  std::string conflict = conflict_of(worker, seen);
  if (!conflict.empty()) return {WorkerState::Excluded, std::move(conflict)};
  if (worker.engines.empty()) return {WorkerState::Unverified, seen.unknown_events};
  const bool none_is_verified =
      std::none_of(worker.engines.begin(), worker.engines.end(),
                   [](const EngineEndpoints& engine) { return engine.unverified.empty(); });
  if (none_is_verified) return {WorkerState::Unverified, worker.engines.front().unverified};
  if (worker.block_size == 0) {
    return {WorkerState::Unverified,
            "the engine does not tell its block size, and no event has come yet"};
  }
  if (seen.block_size_common != 0 && worker.block_size != seen.block_size_common) {
    return {WorkerState::Excluded, "its blocks have " + std::to_string(worker.block_size) +
                                       " tokens, those of most workers " +
                                       std::to_string(seen.block_size_common) +
                                       ": start all engines with one --block-size"};
  }
  const auto incomplete =
      std::find_if(worker.engines.begin(), worker.engines.end(),
                   [](const EngineEndpoints& engine) { return !engine.incomplete.empty(); });
  return {WorkerState::Ready, incomplete == worker.engines.end() ? "" : incomplete->incomplete};
}

// Silent or suspect, and not routed all the same.
bool is_left_out(const Observations& seen) {
  return (seen.is_silent || seen.is_suspect) && !(seen.is_slow && seen.stays_routed);
}

std::string joined(const std::string& reason, const std::string& more) {
  return reason.empty() || more.empty() ? reason + more : reason + "; " + more;
}

}  // namespace

WorkerStatus judge(const Worker& worker, const Observations& seen) {
  if (!seen.was_alive) {
    return {WorkerState::Starting, "has not answered yet: " + seen.failure};
  }
  if (!seen.is_alive) return {WorkerState::Down, seen.failure};
  if (seen.is_silent && is_left_out(seen)) return {WorkerState::Down, seen.failure};
  if (seen.is_drained) return {WorkerState::Draining, "drain=true: takes no new requests"};
  if (is_left_out(seen)) return {WorkerState::Suspect, seen.failure};
  WorkerStatus status = judge_blocks(worker, seen);
  if (seen.is_silent || seen.is_suspect) {
    status.reason = joined(status.reason, seen.failure + ", as with most workers: it stays routed");
  }
  status.reason = joined(status.reason, seen.refused_calls);
  return status;
}

bool is_same_engine(contract::WorkerSpec a, const contract::WorkerSpec& b) {
  a.drain = b.drain;
  a.api_key_file = b.api_key_file;
  return a == b;
}

bool same_endpoints(const std::vector<EngineEndpoints>& a, const std::vector<EngineEndpoints>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.rank == y.rank && x.several_ranks == y.several_ranks && x.events == y.events &&
           x.bind == y.bind && x.replay == y.replay;
  });
}

}  // namespace sightline::fleet
