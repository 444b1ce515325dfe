// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/fleet/discovery.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "common/base/json.h"

namespace sightline::fleet {
namespace {

// Far more than any engine reports; keeps sums within their type.
constexpr double kRequestsMax = 1e6;

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

std::optional<std::uint32_t> whole_number(std::string_view text, std::uint32_t max) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end || value > max) return std::nullopt;
  return value;
}

ServedModel model_of(const json::Value& entry) {
  ServedModel model;
  model.id = text_of(entry, "id");
  model.parent = text_of(entry, "parent");
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

// One line "name{label="value",...} number" of the Prometheus text format.
struct Sample {
  std::string_view name;
  std::string_view labels;  // between the braces
  double value = 0;
};

// The end of a label list that starts at `begin`: a brace outside of quotes.
std::size_t labels_end(std::string_view line, std::size_t begin) {
  bool is_quoted = false;
  for (std::size_t i = begin; i < line.size(); ++i) {
    if (is_quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      is_quoted = !is_quoted;
    } else if (line[i] == '}' && !is_quoted) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::optional<Sample> sample_of(std::string_view line) {
  Sample sample;
  std::size_t end = line.find_first_of("{ ");
  if (end == std::string_view::npos || line.starts_with('#')) return std::nullopt;
  sample.name = line.substr(0, end);
  if (line[end] == '{') {
    const std::size_t close = labels_end(line, end + 1);
    if (close == std::string_view::npos) return std::nullopt;
    sample.labels = line.substr(end + 1, close - end - 1);
    end = close + 1;
  }
  std::string_view number = line.substr(std::min(line.find_first_not_of(' ', end), line.size()));
  number = number.substr(0, number.find(' '));
  const char* stop = number.data() + number.size();
  const auto parsed = std::from_chars(number.data(), stop, sample.value);
  if (parsed.ec != std::errc{} || parsed.ptr != stop || !std::isfinite(sample.value)) {
    return std::nullopt;
  }
  return sample;
}

// The value of a label, as escaped; the names looked for have plain values.
std::string_view label_of(std::string_view labels, std::string_view name) {
  for (std::size_t i = 0; i < labels.size();) {
    const std::size_t equals = labels.find("=\"", i);
    if (equals == std::string_view::npos) return {};
    std::size_t close = equals + 2;
    while (close < labels.size() && labels[close] != '"') close += labels[close] == '\\' ? 2 : 1;
    if (close >= labels.size()) return {};
    if (labels.substr(i, equals - i) == name) return labels.substr(equals + 2, close - equals - 2);
    i = close + 1;
    while (i < labels.size() && (labels[i] == ',' || labels[i] == ' ')) ++i;
  }
  return {};
}

class LoadReader {
 public:
  void read(const Sample& sample) {
    const double count = std::clamp(sample.value, 0.0, kRequestsMax);
    if (sample.name == "vllm:num_requests_running") {
      running_ += count;
    } else if (sample.name == "vllm:num_requests_waiting") {
      waiting_ += count;
    } else if (sample.name == "vllm:kv_cache_usage_perc") {
      kv_usage_ = std::max(kv_usage_, std::clamp(sample.value, 0.0, 1.0));
    } else if (sample.name == "vllm:cache_config_info") {
      const auto size = whole_number(label_of(sample.labels, "block_size"), kBlockSizeMax);
      if (block_sizes_.size() < kRanksMax) block_sizes_.insert(size.value_or(0));
    } else {
      return;
    }
    if (engines_.size() < kRanksMax) engines_.insert(label_of(sample.labels, "engine"));
  }

  [[nodiscard]] Result<EngineLoad> result() const {
    if (engines_.empty()) return corrupt("/metrics: none of vLLM's load metrics is there");
    EngineLoad load;
    load.running = static_cast<std::uint32_t>(std::min(running_, kRequestsMax));
    load.waiting = static_cast<std::uint32_t>(std::min(waiting_, kRequestsMax));
    load.kv_usage = kv_usage_;
    load.ranks = static_cast<std::uint32_t>(engines_.size());
    if (block_sizes_.size() == 1) load.block_size = *block_sizes_.begin();
    return load;
  }

 private:
  double running_ = 0;
  double waiting_ = 0;
  double kv_usage_ = 0;
  std::set<std::string_view> engines_;
  std::set<std::uint32_t> block_sizes_;
};

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

Result<EngineLoad> parse_metrics(std::string_view text) {
  LoadReader reader;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const auto sample = sample_of(text.substr(0, end))) reader.read(*sample);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.result();
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
    return "the engine does not tell its KV event endpoints (no /kv_event_sources): add events= "
           "to this worker";
  }
  return "its KV event endpoints are not known: " + error.message;
}

// The operator's endpoint is seen from here: we connect to it unless it starts with '@'.
ResolvedEndpoint explicit_events(const contract::WorkerSpec& spec) {
  if (spec.events.starts_with('@')) return {spec.events.substr(1), true};
  const auto resolved = resolve_replay_endpoint(spec.events, spec.host);
  return {resolved.ok() ? *resolved : spec.events, false};
}

std::string replay_of(const contract::WorkerSpec& spec, const std::string& told) {
  const std::string& endpoint = spec.replay.empty() ? told : spec.replay;
  if (endpoint.empty()) return {};
  const auto resolved = resolve_replay_endpoint(endpoint, spec.host);
  return resolved.ok() ? *resolved : std::string();
}

void use_explicit(const contract::WorkerSpec& spec, const std::vector<EventSource>& told,
                  Discovery& found) {
  const ResolvedEndpoint events = explicit_events(spec);
  EngineEndpoints engine;
  engine.events = events.endpoint;
  engine.bind = events.bind;
  engine.replay = replay_of(spec, told.empty() ? "" : told.front().replay_endpoint);
  found.engines.push_back(std::move(engine));
}

void use_told(const contract::WorkerSpec& spec, const std::vector<EventSource>& told,
              Discovery& found) {
  for (const EventSource& source : told) {
    if (!source.enabled) {
      found.reason = "the engine publishes no KV events over ZMQ: start it with --kv-events-config";
      break;
    }
    auto events = resolve_events_endpoint(source.endpoint, spec.host);
    if (!events.ok()) {
      found.reason = "its KV events cannot be read: " + events.error().message;
      break;
    }
    EngineEndpoints engine;
    engine.rank = source.rank;
    engine.events = events->endpoint;
    engine.bind = events->bind;
    // An explicit replay endpoint is that of the first rank.
    const bool is_first = &source == &told.front();
    engine.replay = is_first ? replay_of(spec, source.replay_endpoint)
                             : replay_of({.host = spec.host}, source.replay_endpoint);
    found.engines.push_back(std::move(engine));
  }
  if (!found.reason.empty()) found.engines.clear();
}

}  // namespace

Discovery discover(const contract::WorkerSpec& spec, const Probe& probe) {
  Discovery found;
  const std::vector<EventSource> none;
  const std::vector<EventSource>& told = probe.sources.ok() ? *probe.sources : none;
  const std::uint32_t seen = probe.load.ok() ? probe.load->ranks : 0;
  found.ranks = std::max({std::uint32_t{1}, seen, static_cast<std::uint32_t>(told.size())});
  if (!spec.events.empty()) {
    use_explicit(spec, told, found);
  } else if (!probe.sources.ok()) {
    found.reason = why_unknown(probe.sources.error());
  } else if (told.empty()) {
    found.reason = "the engine has no KV event source";
  } else {
    use_told(spec, told, found);
  }
  const std::uint32_t told_size = probe.load.ok() ? probe.load->block_size : 0;
  for (EngineEndpoints& engine : found.engines) {
    engine.worker = spec.name;
    engine.block_size = spec.block_size != 0 ? spec.block_size : told_size;
  }
  return found;
}

}  // namespace sightline::fleet
