// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/admin/event_metrics.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/contract/metric_spec.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/metrics_workers.h"

namespace sightline::admin {

using events::FeedStatus;

void EventMetrics::follow(CacheId cache, std::string worker) {
  const MutexLock lock(mutex_);
  feeds_.try_emplace(cache, FeedTotals{std::move(worker), {}});
}

void EventMetrics::forget(CacheId cache, const std::optional<FeedStatus>& last) {
  const MutexLock lock(mutex_);
  const auto found = feeds_.find(cache);
  if (found == feeds_.end()) return;
  if (last) advance(found->second, *last);
  feeds_.erase(found);
}

void EventMetrics::tell(const std::string& worker, std::span<const FeedStatus> feeds) {
  const MutexLock lock(mutex_);
  std::size_t waiting = 0;
  std::chrono::milliseconds lag{0};
  for (const FeedStatus& status : feeds) {
    const auto found = feeds_.find(status.cache);
    if (found != feeds_.end()) advance(found->second, status);
    waiting += status.waiting_blocks;
    lag = std::max(lag, status.lag);
  }
  metrics_.gauge(contract::kEventWaitingBlocks, {worker}).set(static_cast<double>(waiting));
  // A worker without feeds has no lag. A 0 would look like a fresh feed.
  if (feeds.empty()) return;
  metrics_.gauge(contract::kEventLagSeconds, {worker})
      .set(std::chrono::duration<double>(lag).count());
}

void EventMetrics::tell_index(std::uint64_t blocks_total, std::uint64_t refused_total) {
  const MutexLock lock(mutex_);
  metrics_.gauge(contract::kIndexKeys).set(static_cast<double>(blocks_total));
  // A status older than the last one changes nothing.
  const std::uint64_t more = refused_total - std::min(refused_total, refused_total_);
  refused_total_ += more;
  metrics_.counter(contract::kIndexRefusedBlocksTotal).add(static_cast<double>(more));
}

void EventMetrics::tell_held(std::size_t bytes, std::uint64_t hits_total) {
  const MutexLock lock(mutex_);
  metrics_.gauge(contract::kEventHeldBytes).set(static_cast<double>(bytes));
  const std::uint64_t more = hits_total - std::min(hits_total, held_hits_total_);
  held_hits_total_ += more;
  // The series exists only after the first hit.
  if (more > 0) {
    metrics_.counter(contract::kLimitHitsTotal, {"events.held_bytes_max"})
        .add(static_cast<double>(more));
  }
}

double EventMetrics::FeedTotals::rise(std::string_view key, std::uint64_t total) {
  std::uint64_t& last = totals[key];
  // A status older than the last one changes nothing.
  const std::uint64_t more = total - std::min(total, last);
  last += more;
  return static_cast<double>(more);
}

void EventMetrics::advance(FeedTotals& cache, const FeedStatus& status) {
  const events::StreamStatistics& stream = status.stream;
  const std::pair<const contract::MetricSpec*, std::uint64_t> counters[] = {
      {&contract::kEventsAppliedTotal, status.normaliser.events},
      {&contract::kEventGapsTotal, stream.gaps},
      {&contract::kEventConnectionsLostTotal, status.connections_lost},
      {&contract::kEventRestartsTotal, stream.restarts},
      {&contract::kEventRelearnsTotal, stream.relearns},
  };
  for (const auto& [spec, total] : counters) {
    metrics_.counter(*spec, {cache.worker}).add(cache.rise(spec->name, total));
  }
  advance_unused(cache, status);
}

void EventMetrics::advance_unused(FeedTotals& cache, const FeedStatus& status) {
  const events::NormaliserStatistics& n = status.normaliser;
  const events::StreamStatistics& stream = status.stream;
  const std::pair<std::string_view, std::uint64_t> kinds[] = {
      {"undecodable_message", status.undecodable_messages},
      {"malformed", n.malformed},
      {"unknown_type", n.ignored_type},
      {"unknown_field", n.unknown_field},
      {"unknown_parent", n.unknown_parent},
      {"unknown_content", n.unknown_content},
      {"unknown_length", n.unknown_length},
      {"unknown_removal", n.unknown_removal},
      {"unknown_placeholder", n.unknown_placeholder},
      {"too_many_groups", n.groups_refused},
      {"conflict", n.conflicts},
      {"handles_refused", n.handles_refused},
      {"block_size", n.ignored_block_size},
      {"other_rank", status.other_rank_messages},
      {"late_join", stream.late_joins},
      {"state_dropped", stream.drops},
      {"replay_cut", stream.replays_cut},
      {"replay_timeout", stream.replay_timeouts},
      {"message_without_end", status.overruns},
      {"buffer_overflow", stream.buffer_overflows},
  };
  const auto count = [&](const contract::MetricSpec& spec, const auto& causes) {
    for (const auto& [cause, total] : causes) {
      // A series exists only after its first event. Most kinds never occur.
      if (total > 0) metrics_.counter(spec, {cache.worker, cause}).add(cache.rise(cause, total));
    }
  };
  count(contract::kEventErrorsTotal, kinds);
  const std::pair<std::string_view, std::uint64_t> reasons[] = {
      {"other_group", n.ignored_group},
      {"other_medium", n.ignored_medium},
      {"repeated_report", n.reports_repeated},
  };
  count(contract::kEventsIgnoredTotal, reasons);
}

}  // namespace sightline::admin
