// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/discovery.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "router/engine/families/families.h"
#include "router/engine/family/json_answer.h"

namespace sightline::fleet {
namespace {

using family::corrupt;

std::string why_unknown(const family::Family& family, const Error& error) {
  if (error.code == ErrorCode::NotFound) {
    return "the engine does not report its KV event endpoints (no " +
           std::string(family.questions().sources) + ", " + std::string(family.sources_hint()) +
           "): add events= to this worker";
  }
  return "its KV event endpoints are not known: " + error.message;
}

// The operator's endpoint is written from the router's point of view: the router connects to it,
// unless it begins with '@'. Then the router binds.
Result<ResolvedEndpoint> explicit_events(const contract::WorkerSpec& spec, std::uint32_t offset) {
  auto events = contract::endpoint_of_rank(spec.events, offset);
  if (!events.ok()) return std::move(events).error();
  if (events->starts_with('@')) return ResolvedEndpoint{events->substr(1), true};
  auto resolved = family::resolve_replay_endpoint(*events, spec.host);
  return ResolvedEndpoint{resolved.ok() ? *resolved : *events, false};
}

// Returns the replay socket of the rank `offset` above the first one. `told` is the worker's own
// report.
Result<std::string> replay_of(const contract::WorkerSpec& spec, std::uint32_t offset,
                              const std::string& told) {
  const std::string endpoint =
      spec.replay.empty() ? told : SL_TRY(contract::endpoint_of_rank(spec.replay, offset));
  if (endpoint.empty()) return endpoint;
  const auto resolved = family::resolve_replay_endpoint(endpoint, spec.host);
  return resolved.ok() ? *resolved : std::string();
}

Result<Done> use_explicit(const contract::WorkerSpec& spec, const std::vector<EventSource>& told,
                          Discovery& found) {
  const std::uint32_t first = found.ranks.front().number;
  for (FoundRank& rank : found.ranks) {
    const std::uint32_t offset = rank.number - first;
    ResolvedEndpoint events = SL_TRY(explicit_events(spec, offset));
    const auto source = std::find_if(told.begin(), told.end(),
                                     [&](const EventSource& s) { return s.rank == rank.number; });
    EventEndpoints endpoints{.events = std::move(events.endpoint), .bind = events.bind};
    endpoints.replay =
        SL_TRY(replay_of(spec, offset, source == told.end() ? "" : source->replay_endpoint));
    rank.events = std::move(endpoints);
  }
  return Done{};
}

Result<Done> use_told(const contract::WorkerSpec& spec, const std::vector<EventSource>& told,
                      Discovery& found) {
  for (const EventSource& source : told) {
    if (!source.enabled) {
      return corrupt(
          "the engine publishes no KV events over ZMQ: start it with --kv-events-config");
    }
    auto events = family::resolve_events_endpoint(source.endpoint, spec.host);
    if (!events.ok()) return corrupt("its KV events cannot be read: " + events.error().message);
    EventEndpoints endpoints{.events = events->endpoint, .bind = events->bind};
    endpoints.replay =
        SL_TRY(replay_of(spec, source.rank - told.front().rank, source.replay_endpoint));
    const auto rank = std::find_if(found.ranks.begin(), found.ranks.end(),
                                   [&](const FoundRank& r) { return r.number == source.rank; });
    if (rank != found.ranks.end()) rank->events = std::move(endpoints);
  }
  if (found.has_events()) return Done{};
  return corrupt("its KV event endpoints and its metrics name different data-parallel ranks");
}

// Returns the ranks that the worker reports, empty if it reports no ranks. Its event sources are
// the ranks of this server. The metrics count if it has no sources, or sources of some ranks only.
std::vector<std::uint32_t> ranks_told(const std::vector<EventSource>& told, const Probe& probe) {
  std::vector<std::uint32_t> sources;
  for (const EventSource& source : told) sources.push_back(source.rank);
  std::vector<std::uint32_t> seen;
  if (probe.load.ok()) {
    for (const RankLoad& rank : probe.load->ranks) seen.push_back(rank.number);
  }
  return sources.size() >= seen.size() ? sources : seen;
}

std::string ranks_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " data-parallel rank" : " data-parallel ranks");
}

// Sets the worker's ranks. Returns false if configuration and worker contradict each other.
bool find_ranks(const contract::WorkerSpec& spec, const std::vector<std::uint32_t>& told,
                Discovery& found) {
  if (spec.ranks != 0 && !told.empty() && told.size() != spec.ranks) {
    found.rank_conflict = "the engine has " + ranks_text(told.size()) +
                          ", but this worker has dp=" + std::to_string(spec.ranks) +
                          ": correct or remove dp";
    return false;
  }
  // The configured number counts from rank 0, the worker's own numbers need not.
  found.ranks.clear();
  for (const std::uint32_t number : told) found.ranks.push_back({.number = number});
  const std::uint32_t count = std::max(spec.ranks, 1U);
  for (std::uint32_t i = 0; told.empty() && i < count; ++i) found.ranks.push_back({.number = i});
  return true;
}

}  // namespace

bool Discovery::has_events() const {
  return std::any_of(ranks.begin(), ranks.end(),
                     [](const FoundRank& rank) { return rank.events.has_value(); });
}

std::string text_of(AdapterNews news) {
  return news == AdapterNews::Full
             ? "more adapters than the limit (adapters-max): blocks of the others do not count"
             : "an adapter name may mean another adapter: dropped the worker's blocks to load them "
               "again";
}

AdapterNews take_server_facts(Worker& view, const Probe& probe) {
  if (probe.version) {
    view.version.reset();  // it is asked when another process may have started
    if (probe.version->ok()) view.version = **probe.version;
  }
  if (!probe.models.ok()) return AdapterNews::None;
  set_models(view, *probe.models);
  std::vector<content::ListedAdapter> adapters;
  for (const ServedModel& model : view.models) {
    if (!model.parent.empty()) adapters.push_back({model.id, model.root, model.created_s});
  }
  // `others`: whether names beyond the remembered ones still count.
  const bool had_room = view.adapters.meanings().others;
  if (!view.adapters.learn(adapters)) return AdapterNews::None;
  const bool has_room = view.adapters.meanings().others;
  return had_room && !has_room ? AdapterNews::Full : AdapterNews::Other;
}

void take_load(Worker& view, const Probe& probe) {
  if (probe.load.ok()) set_load(view, *probe.load);
  if (!probe.sources.ok() || probe.sources->empty()) return;
  // Ranks with different block sizes have no common one.
  const std::uint32_t first = probe.sources->front().block_size;
  const bool is_one = std::all_of(probe.sources->begin(), probe.sources->end(),
                                  [first](const auto& s) { return s.block_size == first; });
  if (is_one) view.block_size.take_from_server(first);
}

bool tells_endpoints(const Probe& probe) {
  if (probe.sources.ok()) return true;
  // A worker without an endpoint for event sources reports its ranks by its metrics.
  return probe.sources.error().code == ErrorCode::NotFound && probe.load.ok();
}

Discovery discover(const contract::WorkerSpec& spec, const Probe& probe) {
  Discovery found;
  const std::vector<EventSource> none;
  const std::vector<EventSource>& told = probe.sources.ok() ? *probe.sources : none;
  if (!find_ranks(spec, ranks_told(told, probe), found)) return found;
  Result<Done> used = Done{};
  if (spec.agent) {
    for (FoundRank& rank : found.ranks) rank.events = EventEndpoints{.by_agent = true};
  } else if (!spec.events.empty()) {
    used = use_explicit(spec, told, found);
  } else if (!probe.sources.ok()) {
    found.reason = why_unknown(families::family_of(spec.family), probe.sources.error());
  } else if (told.empty()) {
    found.reason = "the engine has no KV event source";
  } else {
    used = use_told(spec, told, found);
  }
  if (!used.ok()) {
    // All or nothing: endpoints found before the error are dropped too.
    for (FoundRank& rank : found.ranks) rank.events.reset();
    found.reason = used.error().message;
  }
  return found;
}

}  // namespace sightline::fleet
