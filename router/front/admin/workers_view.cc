// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/admin/workers_view.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/json.h"
#include "common/contract/metrics_reuse.h"
#include "common/contract/metrics_workers.h"

#include "router/front/admin/replica_metrics.h"

namespace sightline::admin {
namespace {

using events::FeedStatus;
using fleet::Worker;

std::string text_or_null(const std::string& text) {
  return text.empty() ? "null" : json::to_quoted(text);
}

std::string count_or_null(std::uint64_t count) {
  // 0 means that the number is unknown.
  return count == 0 ? "null" : std::to_string(count);
}

std::string events_json(const std::optional<FeedStatus>& status) {
  if (!status) return "null";
  const std::string seq = status->facts.sequence ? std::to_string(*status->facts.sequence) : "null";
  // Without a message of the engine there is no lag either.
  const std::string lag = status->facts.sequence ? std::to_string(status->lag.count()) : "null";
  return R"({"seq":)" + seq + R"(,"lag_ms":)" + lag + R"(,"gaps":)" +
         std::to_string(status->stream.gaps) + R"(,"replaying":)" +
         (status->replaying ? "true" : "false") + R"(,"connections_lost":)" +
         std::to_string(status->connections_lost) + R"(,"restarts":)" +
         std::to_string(status->stream.restarts) + R"(,"drops":)" +
         std::to_string(status->stream.drops) + R"(,"relearned":)" +
         std::to_string(status->stream.relearns) + R"(,"waiting_blocks":)" +
         std::to_string(status->waiting_blocks) + R"(,"unknown_events":)" +
         std::to_string(status->normaliser.ignored_type) + R"(,"hybrid_cache":)" +
         (status->hybrid_cache ? "true" : "false") + R"(,"upper_bound":)" +
         (status->facts.upper_bound ? "true" : "false") + "}";
}

// The same for an engine behind an agent, from the agent's messages.
std::string events_json(const followed::FollowedStatus& status) {
  const auto& sequence = status.facts.sequence;
  const auto& lag = status.at.lag_by_stamp;
  return R"({"seq":)" + (sequence ? std::to_string(*sequence) : "null") + R"(,"lag_ms":)" +
         (lag ? std::to_string(lag->count()) : "null") + R"(,"gaps":)" +
         std::to_string(status.statistics.gaps) + R"(,"agent":)" +
         text_or_null(status.at.agent ? status.at.agent->name : "") + R"(,"behind":)" +
         std::to_string(behind_of(status)) + R"(,"upper_bound":)" +
         (status.facts.upper_bound ? "true" : "false") + "}";
}

using Deps = WorkersView::Deps;

std::string events_json(CacheId cache, const Deps& view) {
  if (view.followed != nullptr) {
    if (const auto status = view.followed->status(cache)) return events_json(*status);
  }
  return events_json(view.subscriber.status(cache));
}

std::string audit_json(const audit::Tally& tally) {
  return R"({"equal":)" + std::to_string(tally.equal) + R"(,"over":)" + std::to_string(tally.over) +
         R"(,"under":)" + std::to_string(tally.under) + R"(,"untold":)" +
         std::to_string(tally.untold) + R"(,"not_reused":)" + std::to_string(tally.not_reused) +
         R"(,"upper_bound":)" + std::to_string(tally.upper_bound) + R"(,"not_judged":)" +
         std::to_string(tally.not_judged) + R"(,"unexplained":)" +
         std::to_string(tally.unexplained) + R"(,"overfull":)" + std::to_string(tally.overfull) +
         R"(,"relearned":)" + std::to_string(tally.relearned) + R"(,"postponed":)" +
         std::to_string(tally.postponed) + R"(,"relearned_because":)" +
         text_or_null(std::string(tally.relearned_because)) + "}";
}

// Returns why the index lacks blocks of the rank. It is shown only without a worse reason.
std::string lack_of(const fleet::Rank& rank, const Deps& view) {
  return rank.feed ? std::string(view.rooms.lack_of(rank.feed->cache)) : std::string();
}

// The state of a rank is the state of its worker, except for facts about the rank's own events.
std::string state_json(const Worker& worker, const fleet::Rank& rank, const Deps& view) {
  auto state = worker.state;
  std::string reason = worker.reason;
  if (state == fleet::WorkerState::Ready && rank.feed) {
    if (!rank.feed->unverified.empty()) state = fleet::WorkerState::Unverified;
    reason = rank.feed->unverified.empty() ? rank.feed->incomplete : rank.feed->unverified;
  } else if (state == fleet::WorkerState::Ready) {
    state = fleet::WorkerState::Unverified;
    reason = "the engine reports no event endpoint for this rank";
  }
  if (reason.empty()) reason = lack_of(rank, view);
  return R"("state":)" + json::to_quoted(name_of(state)) + R"(,"reason":)" + text_or_null(reason);
}

// Returns the requests of other routers, from their messages.
std::uint32_t others_in_flight(const fleet::Rank& rank) {
  const std::uint32_t own = rank.load->own({}).in_flight;
  const std::uint32_t all = rank.load->read(system_clock().now()).in_flight;
  // The two readings are not of the same moment. The difference must not become negative.
  return all > own ? all - own : 0;
}

std::string rank_json(const Worker& worker, const fleet::Rank& rank, const Deps& view) {
  const std::string out =
      R"({"rank":)" + std::to_string(rank.number) + "," + state_json(worker, rank, view) +
      R"(,"in_flight":)" + std::to_string(rank.load->own({}).in_flight) +
      R"(,"others_in_flight":)" + std::to_string(others_in_flight(rank)) + R"(,"running":)" +
      std::to_string(rank.running) + R"(,"waiting":)" + std::to_string(rank.waiting) +
      R"(,"gpu_blocks":)" + count_or_null(rank.gpu_blocks);
  if (!rank.feed) {
    return out + R"(,"events_endpoint":null,"replay_endpoint":null,"blocks":0)" +
           R"(,"events":null,"audit":null})";
  }
  const fleet::EventEndpoints& endpoints = rank.feed->endpoints;
  const CacheId cache = rank.feed->cache;
  return out + R"(,"events_endpoint":)" + text_or_null(endpoints.events) +
         R"(,"replay_endpoint":)" + text_or_null(endpoints.replay) + R"(,"blocks":)" +
         std::to_string(view.index.blocks(cache)) + R"(,"events":)" + events_json(cache, view) +
         R"(,"audit":)" + audit_json(view.audit.tally(cache)) + "}";
}

std::uint32_t others_in_flight(const Worker& worker) {
  std::uint32_t sum = 0;
  for (const fleet::Rank& rank : worker.ranks) sum += others_in_flight(rank);
  return sum;
}

std::uint32_t in_flight_of(const Worker& worker) {
  std::uint32_t sum = 0;
  for (const fleet::Rank& rank : worker.ranks) sum += rank.load->own({}).in_flight;
  return sum;
}

std::string worker_json(const Worker& worker, const Deps& view) {
  std::uint64_t blocks = 0;
  std::string ranks;
  std::string reason = worker.reason;
  for (const fleet::Rank& rank : worker.ranks) {
    if (reason.empty()) reason = lack_of(rank, view);
    if (rank.feed) blocks += view.index.blocks(rank.feed->cache);
    ranks += (ranks.empty() ? "" : ",") + rank_json(worker, rank, view);
  }
  const fleet::Feed* feed = worker.first_feed();
  return R"({"name":)" + json::to_quoted(worker.spec.name) + R"(,"url":)" +
         json::to_quoted(worker.spec.url) + R"(,"state":)" +
         json::to_quoted(name_of(worker.state)) + R"(,"ready":)" +
         (worker.is_precise() ? "true" : "false") + R"(,"reason":)" + text_or_null(reason) +
         R"(,"family":)" + json::to_quoted(name_of(worker.spec.family)) + R"(,"version":)" +
         text_or_null(worker.version ? worker.version->text : "") + R"(,"block_size":)" +
         count_or_null(worker.block_size.tokens()) + R"(,"block_size_configured":)" +
         count_or_null(worker.block_size.configured()) + R"(,"revision":)" +
         std::to_string(worker.revision) + R"(,"blocks":)" + std::to_string(blocks) +
         R"(,"in_flight":)" + std::to_string(in_flight_of(worker)) + R"(,"running":)" +
         std::to_string(worker.running) + R"(,"waiting":)" + std::to_string(worker.waiting) +
         R"(,"ranks":[)" + ranks + R"(],"events":)" +
         (feed != nullptr ? events_json(feed->cache, view) : "null") + "}";
}

}  // namespace

std::string WorkersView::json() const {
  const auto snapshot = sources_.fleet.snapshot();
  std::string body = "[";
  for (const auto& worker : snapshot->workers) {
    if (body.size() > 1) body += ",";
    body += worker_json(*worker, sources_);
  }
  return body + "]";
}

void WorkersView::feed_ready(const fleet::Worker& worker, const fleet::Rank& rank) {
  event_metrics_.follow(rank.feed->cache, worker.spec.name);
}

void WorkersView::feed_removed(CacheId cache) {
  event_metrics_.forget(cache, sources_.subscriber.status(cache));
}

void WorkersView::refresh() {
  metrics_.gauge(contract::kEventThreadTurnSeconds)
      .set(std::chrono::duration<double>(sources_.subscriber.turn_age()).count());
  event_metrics_.tell_index(sources_.index.blocks_total(), sources_.index.refused_total());
  event_metrics_.tell_held(sources_.subscriber.held_bytes(), sources_.subscriber.held_hits());
  const auto snapshot = sources_.fleet.snapshot();
  for (const auto& worker : snapshot->workers) {
    std::uint64_t blocks = 0;
    std::vector<FeedStatus> statuses;
    for (const fleet::Rank& rank : worker->ranks) {
      if (!rank.feed) continue;
      blocks += sources_.index.blocks(rank.feed->cache);
      if (auto status = sources_.subscriber.status(rank.feed->cache))
        statuses.push_back(std::move(*status));
    }
    event_metrics_.tell(worker->spec.name, statuses);
    const std::uint32_t own = in_flight_of(*worker);
    metrics_.gauge(contract::kWorkerInflight, {worker->spec.name}).set(own);
    metrics_.gauge(contract::kWorkerBelievedInflight, {worker->spec.name})
        .set(own + others_in_flight(*worker));
    metrics_.gauge(contract::kIndexBlocks, {worker->spec.name}).set(static_cast<double>(blocks));
    tell_engine(*worker);
  }
}

void WorkersView::tell_engine(const fleet::Worker& worker) const {
  const std::string& name = worker.spec.name;
  if (const auto pace = worker.pace->seconds_per_token()) {
    metrics_.gauge(contract::kPrefillSecondsPerToken, {name}).set(*pace);
  }
  const auto read = worker.load_read->at();
  // Without a reading of the engine's metrics, old values must not be shown as present ones.
  if (!read) return;
  metrics_.gauge(contract::kWorkerQueueRequests, {name}).set(worker.waiting);
  metrics_.gauge(contract::kWorkerKvUseRatio, {name}).set(worker.kv_usage);
  const Duration age = sources_.clock.now() - *read;
  metrics_.gauge(contract::kWorkerReadingAgeSeconds, {name})
      .set(std::chrono::duration<double>(age).count());
}

}  // namespace sightline::admin
