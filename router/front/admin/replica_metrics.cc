// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/admin/replica_metrics.h"

#include <algorithm>
#include <chrono>

#include "common/contract/metric_spec.h"
#include "common/contract/metrics_replicas.h"

namespace sightline::admin {
namespace {

using contract::MetricSpec;
using followed::FollowedStatus;

// A status older than the last one changes nothing.
double rise(std::uint64_t& last, std::uint64_t total) {
  const std::uint64_t more = total - std::min(total, last);
  last += more;
  return static_cast<double>(more);
}

}  // namespace

std::uint64_t behind_of(const FollowedStatus& status) {
  const std::uint64_t position = status.at.position.value_or(0);
  return status.at.head - std::min(position, status.at.head);
}

// The gauges of all ranks of one worker. Bytes and dead agents add up. For the other gauges the
// worst
// rank counts.
struct ReplicaMetrics::Gauges {
  std::size_t waiting_bytes = 0;
  std::uint64_t behind = 0;
  std::size_t dead = 0;
  std::chrono::milliseconds lag{0};
  bool has_lag = false;
  // Each of the ranks had an equal digest at some time.
  bool was_equal = true;
  Instant equal_at = Instant::max();

  void add(const FollowedStatus& status) {
    waiting_bytes += status.at.waiting_bytes;
    behind = std::max(behind, behind_of(status));
    dead += status.at.dead_since ? 1 : 0;
    if (status.at.lag_by_stamp) {
      has_lag = true;
      lag = std::max(lag, *status.at.lag_by_stamp);
    }
    was_equal &= status.at.digest_equal_at.has_value();
    if (was_equal) equal_at = std::min(equal_at, *status.at.digest_equal_at);
  }
};

void ReplicaMetrics::follow(CacheId cache) {
  const MutexLock lock(mutex_);
  streams_.try_emplace(cache);
}

void ReplicaMetrics::forget(CacheId cache, const std::optional<FollowedStatus>& last) {
  const MutexLock lock(mutex_);
  const auto found = streams_.find(cache);
  if (found == streams_.end()) return;
  if (last) advance(*last, found->second);
  streams_.erase(found);
}

void ReplicaMetrics::tell(std::span<const FollowedStatus> streams) {
  const MutexLock lock(mutex_);
  WorkerGauges workers;
  for (const FollowedStatus& status : streams) {
    const auto found = streams_.find(status.cache);
    if (found == streams_.end()) continue;
    advance(status, found->second);
    workers[status.stream.worker].add(status);
  }
  set_gauges(workers);
}

void ReplicaMetrics::advance(const FollowedStatus& status, Totals& totals) {
  const follower::FollowerStatistics& s = status.statistics;
  const std::string& worker = status.stream.worker;
  const auto count = [&](const MetricSpec& spec, std::uint64_t total) {
    metrics_.counter(spec, {worker}).add(rise(totals[{spec.name, {}}], total));
  };
  count(contract::kReplicaFramesTotal, s.frames);
  count(contract::kReplicaOperationsTotal, s.operations);
  advance_parts(status, totals);
}

void ReplicaMetrics::advance_parts(const FollowedStatus& status, Totals& totals) {
  const follower::FollowerStatistics& s = status.statistics;
  const auto count = [&](const MetricSpec& spec, std::string_view label, std::uint64_t total) {
    // A series exists only after its first event.
    if (total == 0) return;
    metrics_.counter(spec, {status.stream.worker, label})
        .add(rise(totals[{spec.name, label}], total));
  };
  count(contract::kReplicaStreamEventsTotal, "epoch", s.epochs);
  count(contract::kReplicaStreamEventsTotal, "gap", s.gaps);
  count(contract::kReplicaStreamEventsTotal, "loss", status.losses);
  count(contract::kReplicaStreamEventsTotal, "contest", s.contests);
  count(contract::kReplicaStreamEventsTotal, "forgotten", s.forgotten);
  count(contract::kReplicaStreamEventsTotal, "relearn-put-off", s.relearn_put_off);
  count(contract::kReplicaAsksTotal, "question", s.questions);
  count(contract::kReplicaAsksTotal, "range", s.range_asks);
  count(contract::kReplicaAsksTotal, "dump", s.dump_asks);
  count(contract::kReplicaAsksTotal, "chunk", s.chunk_asks);
  count(contract::kReplicaAsksTotal, "relearn", s.relearn_asks);
  count(contract::kReplicaDumpsTotal, "whole", s.dumps);
  count(contract::kReplicaDumpsTotal, "failed", s.dumps_failed);
  count(contract::kReplicaDigestsTotal, "equal", s.digests_equal);
  count(contract::kReplicaDigestsTotal, "unequal", s.digests_unequal);
  count(contract::kReplicaDigestsTotal, "capped", s.digests_capped);
  for (std::size_t i = 0; i < follower::kDropCount; ++i) {
    count(contract::kReplicaDroppedTotal, name_of(static_cast<follower::Drop>(i)), s.dropped[i]);
  }
  for (std::size_t i = 0; i < followed::kRefusalCount; ++i) {
    count(contract::kReplicaRefusedTotal, name_of(static_cast<followed::Refusal>(i)),
          status.refused[i]);
  }
}

void ReplicaMetrics::set_gauges(const WorkerGauges& workers) {
  for (const auto& [worker, now] : workers) {
    metrics_.gauge(contract::kReplicaWaitingBytes, {worker})
        .set(static_cast<double>(now.waiting_bytes));
    metrics_.gauge(contract::kReplicaBehindFrames, {worker}).set(static_cast<double>(now.behind));
    metrics_.gauge(contract::kReplicaAgentsDead, {worker}).set(static_cast<double>(now.dead));
    // 0 shows that a rank never had an equal digest.
    metrics_.gauge(contract::kReplicaDigestEqualTimestampSeconds, {worker})
        .set(now.was_equal ? timestamp(now.equal_at) : 0);
    // Without a time stamp the lag is unknown.
    if (!now.has_lag) continue;
    metrics_.gauge(contract::kReplicaLagSeconds, {worker})
        .set(std::chrono::duration<double>(now.lag).count());
  }
}

double ReplicaMetrics::timestamp(Instant at) const {
  // An Instant has no date. Its age is therefore subtracted from the wall time.
  const auto then = clock_.wall() - (clock_.now() - at);
  return std::chrono::duration<double>(then.time_since_epoch()).count();
}

}  // namespace sightline::admin
