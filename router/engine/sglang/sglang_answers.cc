// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/sglang/sglang_answers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "router/engine/family/json_answer.h"

namespace sightline::sglang {

using contract::kRanksMax;
using family::corrupt;
using family::EventSource;
using family::parse_object;
using family::text_of;

namespace {

constexpr std::int64_t kPortMax = 65535;

// Returns a whole number from `least` to `most`. Empty if the member has no number like that.
std::optional<std::uint32_t> whole_of(const json::Value& object, std::string_view name,
                                      std::int64_t least, std::int64_t most) {
  const auto member = object.find(name);
  const auto number = member ? member->integer() : std::nullopt;
  if (!number || *number < least || *number > most) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

double number_of(const json::Value& object, std::string_view name, double most) {
  const auto member = object.find(name);
  return std::clamp(member ? member->number().value_or(0) : 0, 0.0, most);
}

// A socket that listens on all addresses is reachable at the host of the worker's URL.
std::string endpoint_of(const std::string& host, std::uint32_t port) {
  const bool is_any = host == "0.0.0.0" || host == "::" || host == "[::]";
  const bool is_bare_v6 = host.find(':') != std::string::npos && !host.starts_with('[');
  const std::string place = is_any ? "*" : is_bare_v6 ? "[" + host + "]" : host;
  return "tcp://" + place + ":" + std::to_string(port);
}

}  // namespace

Result<family::Version> parse_version(std::string body) {
  const auto document = SL_TRY(parse_object(std::move(body), "/server_info"));
  auto version = family::parse_version(text_of(document.root(), "version"));
  if (!version) return corrupt("/server_info: no version like 0.5.23");
  return std::move(*version);
}

Result<std::vector<EventSource>> parse_event_sources(std::string body) {
  const auto document = SL_TRY(parse_object(std::move(body), "/server_info"));
  std::vector<EventSource> sources;
  const auto events = document.root().find("kv_events");
  if (!events || events->is(json::Kind::Null)) return sources;
  if (!events->is(json::Kind::Object)) return corrupt("/server_info: kv_events is not an object");
  const std::string host = text_of(*events, "endpoint_host");
  const auto ranks = whole_of(*events, "dp_size", 1, kRanksMax);
  if (!ranks) return corrupt("/server_info: dp_size of kv_events is not in 1..64");
  // The ports of all ranks must be valid, so the base has a lower limit.
  const auto port = whole_of(*events, "endpoint_port_base", 1, kPortMax - *ranks + 1);
  const auto replay = whole_of(*events, "replay_endpoint_port_base", 1, kPortMax - *ranks + 1);
  const auto block_size = whole_of(*events, "block_size", 1, family::kBlockSizeMax);
  const bool publishes = text_of(*events, "publisher") == "zmq";
  if (publishes && (!port || host.empty())) {
    return corrupt("/server_info: kv_events lacks endpoint_host or endpoint_port_base");
  }
  for (std::uint32_t rank = 0; rank < *ranks; ++rank) {
    EventSource source;
    source.rank = rank;
    source.block_size = block_size.value_or(0);
    source.enabled = publishes;
    if (source.enabled) source.endpoint = endpoint_of(host, *port + rank);
    // The answer has no host for replays, so it is the host of the worker's URL.
    if (replay) source.replay_endpoint = endpoint_of("*", *replay + rank);
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<family::ServerLoad> parse_loads(std::string body) {
  const auto document = SL_TRY(parse_object(std::move(body), "/v1/loads"));
  const auto entries = document.root().find("loads");
  if (!entries || !entries->is(json::Kind::Array) || entries->size() == 0 ||
      entries->size() > kRanksMax) {
    return corrupt("/v1/loads: no list 'loads' of 1 to 64 ranks");
  }
  family::ServerLoad load;
  for (const json::Value entry : *entries) {
    const auto number = whole_of(entry, "dp_rank", 0, kRanksMax - 1);
    if (!number) return corrupt("/v1/loads: an entry without a dp_rank below 64");
    const auto is_same = [&](const auto& rank) { return rank.number == *number; };
    // Two loads of one rank contradict each other.
    if (std::any_of(load.ranks.begin(), load.ranks.end(), is_same)) {
      return corrupt("/v1/loads: a dp_rank occurs twice");
    }
    family::RankLoad rank{.number = *number};
    rank.running =
        static_cast<std::uint32_t>(number_of(entry, "num_running_reqs", family::kRequestsMax));
    rank.waiting =
        static_cast<std::uint32_t>(number_of(entry, "num_waiting_reqs", family::kRequestsMax));
    rank.kv_usage = number_of(entry, "token_usage", 1);
    load.running += rank.running;
    load.waiting += rank.waiting;
    load.kv_usage = std::max(load.kv_usage, rank.kv_usage);
    load.ranks.push_back(rank);
  }
  std::sort(load.ranks.begin(), load.ranks.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  return load;
}

}  // namespace sightline::sglang
