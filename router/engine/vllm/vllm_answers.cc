// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/engine/vllm/vllm_answers.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "common/base/number.h"

#include "router/engine/family/json_answer.h"

namespace sightline::vllm {

using contract::kRanksMax;
using family::corrupt;
using family::EventSource;
using family::parse_object;
using family::text_of;

namespace {

EventSource source_of(std::uint32_t rank, const json::Value& entry) {
  EventSource source;
  source.rank = rank;
  source.endpoint = text_of(entry, "endpoint");
  source.replay_endpoint = text_of(entry, "replay_endpoint");
  const auto enabled = entry.find("enable_kv_cache_events");
  // The router reads events over ZMQ only.
  source.enabled = enabled && enabled->boolean().value_or(false) &&
                   text_of(entry, "publisher") == "zmq" && !source.endpoint.empty();
  return source;
}

}  // namespace

Result<family::Version> parse_version(std::string body) {
  const auto document = SL_TRY(parse_object(std::move(body), "/version"));
  auto version = family::parse_version(text_of(document.root(), "version"));
  if (!version) return corrupt("/version: no version like 0.32.0");
  return std::move(*version);
}

Result<std::vector<EventSource>> parse_event_sources(std::string body) {
  const auto document = SL_TRY(parse_object(std::move(body), "/kv_event_sources"));
  std::vector<EventSource> sources;
  std::set<std::uint32_t> ranks;
  for (const json::Value entry : document.root()) {
    const auto rank = whole_number(entry.name(), kRanksMax - 1);
    // JSON allows a repeated key, but one rank has only one source.
    if (!rank || !entry.is(json::Kind::Object) || !ranks.insert(*rank).second) {
      return corrupt("/kv_event_sources: a member is not a data-parallel rank below 64");
    }
    sources.push_back(source_of(*rank, entry));
  }
  std::sort(sources.begin(), sources.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return sources;
}

}  // namespace sightline::vllm
