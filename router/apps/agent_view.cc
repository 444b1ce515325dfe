// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/apps/agent_view.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "common/base/error.h"
#include "common/base/json.h"

namespace sightline::apps {
namespace {

using agent::StreamView;

// The reason of a worker before its first probe has ended (fleet::Observations::failure).
constexpr std::string_view kNotAsked = "not asked yet";

std::string text_or_null(std::string_view text) {
  return text.empty() ? "null" : json::to_quoted(text);
}

std::string_view true_or_false(bool value) { return value ? "true" : "false"; }

// A text, because many readers of JSON would round the number.
std::string epoch_json(std::optional<std::uint64_t> epoch) {
  if (!epoch) return "null";
  std::array<char, 24> text{};
  (void)std::snprintf(text.data(), text.size(), "\"%016llx\"",
                      static_cast<unsigned long long>(*epoch));
  return text.data();
}

std::string reason_json(const fleet::Worker& worker, const fleet::Rank& rank) {
  // Without a feed, the worker's reason says why.
  if (!rank.feed) return text_or_null(worker.reason);
  return text_or_null(rank.feed->unverified.empty() ? rank.feed->incomplete
                                                    : rank.feed->unverified);
}

std::string stream_json(const StreamView& stream) {
  const operations::CacheDigest& digest = stream.digest;
  std::string out = R"("epoch":)" + epoch_json(stream.epoch) + R"(,"position":)" +
                    std::to_string(stream.position) + R"(,"blocks":)" +
                    std::to_string(digest.of(operations::Tier::Gpu).count) + R"(,"blocks_cpu":)" +
                    std::to_string(digest.of(operations::Tier::Cpu).count) +
                    R"(,"blocks_storage":)" +
                    std::to_string(digest.of(operations::Tier::Storage).count);
  out += R"(,"seq":)";
  out += stream.facts.sequence ? std::to_string(*stream.facts.sequence) : "null";
  out += R"(,"lag_ms":)";
  out += stream.lag_by_stamp ? std::to_string(stream.lag_by_stamp->count()) : "null";
  out += R"(,"capped":)";
  out += true_or_false(stream.is_capped);
  out += R"(,"draining":)";
  out += true_or_false(stream.facts.draining);
  return out + R"(,"unsent":)" + std::to_string(stream.unsent + stream.statistics.frames_unsent) +
         R"(,"memory_bytes":)" + std::to_string(stream.memory_bytes);
}

std::string rank_json(const fleet::Worker& worker, const fleet::Rank& rank,
                      std::span<const StreamView> streams) {
  const frames::StreamName name{.worker = worker.spec.name, .rank = rank.number};
  const auto found = std::find_if(streams.begin(), streams.end(),
                                  [&](const StreamView& one) { return one.name == name; });
  // A rank whose stream does not exist yet shows an empty one.
  const bool is_there = found != streams.end();
  return R"({"rank":)" + std::to_string(rank.number) + R"(,"reason":)" + reason_json(worker, rank) +
         R"(,"events_endpoint":)" + text_or_null(rank.feed ? rank.feed->endpoints.events : "") +
         R"(,"replay_endpoint":)" + text_or_null(rank.feed ? rank.feed->endpoints.replay : "") +
         "," + stream_json(is_there ? *found : StreamView{}) + "}";
}

std::string worker_json(const fleet::Worker& worker, std::span<const StreamView> streams) {
  std::string ranks;
  for (const fleet::Rank& rank : worker.ranks) {
    ranks += (ranks.empty() ? "" : ",") + rank_json(worker, rank, streams);
  }
  const std::uint32_t block_size = worker.block_size.tokens();
  return R"({"name":)" + json::to_quoted(worker.spec.name) + R"(,"url":)" +
         json::to_quoted(worker.spec.url) + R"(,"state":)" +
         json::to_quoted(name_of(worker.state)) + R"(,"reason":)" + text_or_null(worker.reason) +
         R"(,"family":)" + json::to_quoted(name_of(worker.spec.family)) + R"(,"version":)" +
         text_or_null(worker.version ? worker.version->text : "") + R"(,"block_size":)" +
         (block_size == 0 ? "null" : std::to_string(block_size)) + R"(,"running":)" +
         std::to_string(worker.running) + R"(,"waiting":)" + std::to_string(worker.waiting) +
         R"(,"ranks":[)" + ranks + "]}";
}

}  // namespace

std::string agent_workers_json(const fleet::FleetSnapshot& fleet,
                               std::span<const StreamView> streams) {
  std::string body = "[";
  for (const auto& worker : fleet.workers) {
    if (body.size() > 1) body += ",";
    body += worker_json(*worker, streams);
  }
  return body + "]";
}

std::vector<agent::WantedStream> wanted_streams(const fleet::FleetSnapshot& fleet) {
  std::vector<agent::WantedStream> wanted;
  for (const auto& worker : fleet.workers) {
    for (const fleet::Rank& rank : worker->ranks) {
      // Routers show this reason while the rank has no events.
      std::string why = "its agent does not read its KV events: ";
      why += worker->reason.empty() ? "the feed is not open yet" : worker->reason;
      wanted.push_back(
          {.name = {.worker = worker->spec.name, .rank = rank.number}, .reason = std::move(why)});
    }
  }
  return wanted;
}

Result<Done> check_asked(const fleet::FleetSnapshot& fleet) {
  for (const auto& worker : fleet.workers) {
    // Only this reason shows that no probe has ended yet.
    if (worker->state == fleet::WorkerState::Starting &&
        worker->reason.find(kNotAsked) != std::string::npos) {
      return internal_error("worker " + worker->spec.name + " is " + std::string(kNotAsked));
    }
  }
  return Done{};
}

}  // namespace sightline::apps
