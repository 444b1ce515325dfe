// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/discovery.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "common/base/json.h"
#include "common/base/number.h"

namespace sightline::fleet {
namespace {

Error corrupt(std::string message) {
  return worker_error(ErrorCode::Corrupt, std::move(message), false);
}

Result<json::Document> parse_object(std::string body, const std::string& what) {
  auto document = json::Document::parse(std::move(body));
  if (!document.ok()) return corrupt(what + ": " + document.error().message);
  if (!document->root().is(json::Kind::Object)) return corrupt(what + ": not a JSON object");
  return document;
}

// A string member within the limit; empty when it is absent, null or of another kind.
std::string text_of(const json::Value& object, std::string_view name) {
  const auto member = object.find(name);
  const auto text = member ? member->string() : std::nullopt;
  return text && text->size() <= kNameBytesMax ? std::string(*text) : std::string();
}

// A path; of what is too long for one the end.
std::string root_of(const json::Value& entry) {
  const auto member = entry.find("root");
  const auto text = member ? member->string() : std::nullopt;
  if (!text) return {};
  return std::string(text->substr(text->size() - std::min(text->size(), kRootBytesMax)));
}

ServedModel model_of(const json::Value& entry) {
  ServedModel model;
  model.id = text_of(entry, "id");
  model.parent = text_of(entry, "parent");
  model.root = root_of(entry);
  const auto created = entry.find("created");
  const auto time_s = created ? created->integer() : std::nullopt;
  if (time_s && *time_s > 0) model.created_s = static_cast<double>(*time_s);
  const auto length = entry.find("max_model_len");
  const auto tokens = length ? length->integer() : std::nullopt;
  if (tokens && *tokens > 0 && *tokens <= kModelLenMax) {
    model.max_model_len = static_cast<std::uint32_t>(*tokens);
  }
  return model;
}

EventSource source_of(std::uint32_t rank, const json::Value& entry) {
  EventSource source;
  source.rank = rank;
  source.endpoint = text_of(entry, "endpoint");
  source.replay_endpoint = text_of(entry, "replay_endpoint");
  const auto enabled = entry.find("enable_kv_cache_events");
  source.enabled = enabled && enabled->boolean().value_or(false) &&
                   text_of(entry, "publisher") == "zmq" && !source.endpoint.empty();
  return source;
}

}  // namespace

Result<std::vector<ServedModel>> parse_models(std::string body) {
  const auto document = SL_TRY(parse_object(std::move(body), "/v1/models"));
  const auto entries = document.root().find("data");
  if (!entries || !entries->is(json::Kind::Array)) return corrupt("/v1/models: no list 'data'");
  if (entries->size() > kModelsMax) return corrupt("/v1/models: more than 256 entries");
  std::vector<ServedModel> models;
  for (const json::Value entry : *entries) {
    ServedModel model = model_of(entry);
    if (model.id.empty()) return corrupt("/v1/models: an entry without a usable id");
    models.push_back(std::move(model));
  }
  return models;
}

Result<vllm::Version> parse_version(std::string body) {
  const auto document = SL_TRY(parse_object(std::move(body), "/version"));
  auto version = vllm::parse_version(text_of(document.root(), "version"));
  if (!version) return corrupt("/version: no version of the form 0.32.0");
  return std::move(*version);
}

Result<std::vector<EventSource>> parse_event_sources(std::string body) {
  const auto document = SL_TRY(parse_object(std::move(body), "/kv_event_sources"));
  std::vector<EventSource> sources;
  std::set<std::uint32_t> ranks;
  for (const json::Value entry : document.root()) {
    const auto rank = whole_number(entry.name(), kRanksMax - 1);
    if (!rank || !entry.is(json::Kind::Object) || !ranks.insert(*rank).second) {
      return corrupt("/kv_event_sources: a member is no data-parallel rank below 64");
    }
    sources.push_back(source_of(*rank, entry));
  }
  std::sort(sources.begin(), sources.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return sources;
}

namespace {

struct Endpoint {
  std::string_view host;
  std::string_view port;
};

// "tcp://host:port" taken apart; the port a number above 0.
std::optional<Endpoint> tcp_endpoint(std::string_view text) {
  constexpr std::string_view kScheme = "tcp://";
  const std::size_t colon = text.rfind(':');
  if (!text.starts_with(kScheme) || colon < kScheme.size()) return std::nullopt;
  const Endpoint endpoint{text.substr(kScheme.size(), colon - kScheme.size()),
                          text.substr(colon + 1)};
  const auto port = whole_number(endpoint.port, 65535);
  if (endpoint.host.empty() || !port || *port == 0) return std::nullopt;
  return endpoint;
}

bool is_wildcard(std::string_view host) { return host == "*" || host == "[::]" || host == "::"; }

std::string tcp_text(std::string_view host, std::string_view port) {
  const bool needs_brackets = host.find(':') != std::string_view::npos && !host.starts_with('[');
  std::string text = "tcp://";
  text += needs_brackets ? "[" + std::string(host) + "]" : std::string(host);
  return text + ":" + std::string(port);
}

bool is_ipc(std::string_view text) { return text.starts_with("ipc://") && text.size() > 6; }

Error bad_endpoint(std::string_view text) {
  return corrupt("'" + std::string(text.substr(0, kNameBytesMax)) +
                 "' is not an endpoint of the form tcp://HOST:PORT or ipc://PATH");
}

}  // namespace

Result<ResolvedEndpoint> resolve_events_endpoint(std::string_view engine_side,
                                                 std::string_view worker_host) {
  if (is_ipc(engine_side)) return ResolvedEndpoint{std::string(engine_side), false};
  const auto endpoint = tcp_endpoint(engine_side);
  if (!endpoint) return bad_endpoint(engine_side);
  if (is_wildcard(endpoint->host)) {
    return ResolvedEndpoint{tcp_text(worker_host, endpoint->port), false};
  }
  if (engine_side.find("::") != std::string_view::npos) {
    return ResolvedEndpoint{std::string(engine_side), false};
  }
  if (endpoint->host == "0.0.0.0") {
    return corrupt(
        "the engine connects to " + std::string(engine_side) +
        ", where nobody listens: configure it with tcp://*:" + std::string(endpoint->port));
  }
  return ResolvedEndpoint{tcp_text("*", endpoint->port), true};
}

Result<std::string> resolve_replay_endpoint(std::string_view engine_side,
                                            std::string_view worker_host) {
  if (is_ipc(engine_side)) return std::string(engine_side);
  const auto endpoint = tcp_endpoint(engine_side);
  if (!endpoint) return bad_endpoint(engine_side);
  const bool is_any = is_wildcard(endpoint->host) || endpoint->host == "0.0.0.0";
  return is_any ? tcp_text(worker_host, endpoint->port) : std::string(engine_side);
}

namespace {

std::string why_unknown(const Error& error) {
  if (error.code == ErrorCode::NotFound) {
    return "the engine does not tell its KV event endpoints (no /kv_event_sources, which vLLM has "
           "from 0.31): add events= to this worker";
  }
  return "its KV event endpoints are not known: " + error.message;
}

// The operator's endpoint is seen from here: we connect to it unless it starts with '@'.
Result<ResolvedEndpoint> explicit_events(const contract::WorkerSpec& spec, std::uint32_t offset) {
  auto events = contract::endpoint_of_rank(spec.events, offset);
  if (!events.ok()) return std::move(events).error();
  if (events->starts_with('@')) return ResolvedEndpoint{events->substr(1), true};
  auto resolved = resolve_replay_endpoint(*events, spec.host);
  return ResolvedEndpoint{resolved.ok() ? *resolved : *events, false};
}

// The replay socket of the rank `offset` above the first; `told` is what the engine says of it.
Result<std::string> replay_of(const contract::WorkerSpec& spec, std::uint32_t offset,
                              const std::string& told) {
  const std::string endpoint =
      spec.replay.empty() ? told : SL_TRY(contract::endpoint_of_rank(spec.replay, offset));
  if (endpoint.empty()) return endpoint;
  const auto resolved = resolve_replay_endpoint(endpoint, spec.host);
  return resolved.ok() ? *resolved : std::string();
}

Result<Done> use_explicit(const contract::WorkerSpec& spec, const std::vector<EventSource>& told,
                          Discovery& found) {
  for (const std::uint32_t rank : found.ranks) {
    const std::uint32_t offset = rank - found.ranks.front();
    ResolvedEndpoint events = SL_TRY(explicit_events(spec, offset));
    const auto source = std::find_if(told.begin(), told.end(),
                                     [rank](const EventSource& s) { return s.rank == rank; });
    EngineEndpoints engine;
    engine.rank = rank;
    engine.events = std::move(events.endpoint);
    engine.bind = events.bind;
    engine.replay =
        SL_TRY(replay_of(spec, offset, source == told.end() ? "" : source->replay_endpoint));
    found.engines.push_back(std::move(engine));
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
    auto events = resolve_events_endpoint(source.endpoint, spec.host);
    if (!events.ok()) return corrupt("its KV events cannot be read: " + events.error().message);
    EngineEndpoints engine;
    engine.rank = source.rank;
    engine.events = events->endpoint;
    engine.bind = events->bind;
    engine.replay =
        SL_TRY(replay_of(spec, source.rank - told.front().rank, source.replay_endpoint));
    found.engines.push_back(std::move(engine));
  }
  return Done{};
}

// The ranks that the engine tells; none: it does not tell. Its event sources are the ranks of this
// very server; the metrics count where it has none, or those of some ranks only.
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

// Sets the worker's ranks; false: configuration and engine contradict each other.
bool find_ranks(const contract::WorkerSpec& spec, const std::vector<std::uint32_t>& told,
                Discovery& found) {
  if (spec.ranks != 0 && !told.empty() && told.size() != spec.ranks) {
    found.rank_conflict = "the engine has " + ranks_text(told.size()) +
                          ", configured is dp=" + std::to_string(spec.ranks) +
                          ": correct or remove dp";
    return false;
  }
  found.ranks = told;
  if (told.empty()) {
    found.ranks.resize(std::max(spec.ranks, 1U));
    std::iota(found.ranks.begin(), found.ranks.end(), 0U);
  }
  return true;
}

}  // namespace

std::string text_of(AdapterNews news) {
  return news == AdapterNews::Full
             ? "more adapters than are remembered: blocks of others are not known"
             : "a name stands for another adapter: blocks are learned anew";
}

AdapterNews take_facts(Worker& view, const Probe& probe) {
  if (probe.version) {
    view.version.reset();  // it is asked for where another process may be there
    if (probe.version->ok()) view.version = **probe.version;
  }
  if (!probe.models.ok()) return AdapterNews::None;
  set_models(view, *probe.models);
  std::vector<vllm::ToldAdapter> adapters;
  for (const ServedModel& model : view.models) {
    if (!model.parent.empty()) adapters.push_back({model.id, model.root, model.created_s});
  }
  const bool had_room = view.adapters.beliefs().others;
  if (!view.adapters.learn(adapters)) return AdapterNews::None;
  const bool has_room = view.adapters.beliefs().others;
  return had_room && !has_room ? AdapterNews::Full : AdapterNews::Other;
}

bool tells_endpoints(const Probe& probe) {
  if (probe.sources.ok()) return true;
  // An engine that never tells its event sources tells its ranks by its metrics.
  return probe.sources.error().code == ErrorCode::NotFound && probe.load.ok();
}

Discovery discover(const contract::WorkerSpec& spec, const Probe& probe) {
  Discovery found;
  const std::vector<EventSource> none;
  const std::vector<EventSource>& told = probe.sources.ok() ? *probe.sources : none;
  if (!find_ranks(spec, ranks_told(told, probe), found)) return found;
  Result<Done> used = Done{};
  if (!spec.events.empty()) {
    used = use_explicit(spec, told, found);
  } else if (!probe.sources.ok()) {
    found.reason = why_unknown(probe.sources.error());
  } else if (told.empty()) {
    found.reason = "the engine has no KV event source";
  } else {
    used = use_told(spec, told, found);
  }
  if (!used.ok()) {
    found.engines.clear();
    found.reason = used.error().message;
  }
  for (EngineEndpoints& engine : found.engines) {
    engine.worker = spec.name;
    engine.several_ranks = found.ranks.size() > 1;
    engine.block_size_explicit = spec.block_size;
    engine.copies = spec.copies;
  }
  return found;
}

}  // namespace sightline::fleet
