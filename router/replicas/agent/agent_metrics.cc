// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/agent/agent_metrics.h"

#include <array>
#include <set>
#include <utility>
#include <vector>

#include "common/contract/metric_spec.h"
#include "common/contract/metrics_agents.h"
#include "common/contract/metrics_requests.h"

#include "router/cache/operations/operation.h"

namespace sightline::agent {

namespace {

using contract::MetricSpec;

constexpr std::array<std::string_view, operations::kTierCount> kTiers = {"gpu", "cpu", "storage"};

// The gauges of one worker, over all of its ranks.
struct WorkerSum {
  std::size_t open = 0;
  std::size_t memory_bytes = 0;
  std::array<std::uint64_t, operations::kTierCount> blocks{};
};

// A counter of a stream. The label follows the worker's label, or is the only one if the metric has
// no worker.
struct StreamCount {
  const MetricSpec* metric;
  std::string_view label;
  std::uint64_t total;
};

std::vector<StreamCount> counts_of(const StreamView& stream) {
  const publisher::PublisherStatistics& s = stream.statistics;
  return {{&contract::kAgentEpochsTotal, {}, s.epochs},
          {&contract::kAgentFramesTotal, {}, s.frames},
          {&contract::kAgentUnsentTotal, {}, s.frames_unsent + stream.unsent},
          {&contract::kAgentRepliesTotal, "answer", s.questions},
          {&contract::kAgentRepliesTotal, "range", s.ranges},
          {&contract::kAgentRepliesTotal, "range-gone", s.ranges_gone},
          {&contract::kAgentRepliesTotal, "epoch-gone", s.epochs_gone},
          {&contract::kAgentRepliesTotal, "chunk", s.chunks},
          {&contract::kAgentRepliesTotal, "dump-gone", s.dumps_gone},
          {&contract::kAgentDumpsTotal, "made", s.dumps},
          {&contract::kAgentDumpsTotal, "anew", s.dumps_anew},
          {&contract::kAgentAsksRefusedTotal, "reader-limit", s.asks_refused},
          {&contract::kAgentAsksRefusedTotal, "repeated", s.asks_repeated},
          {&contract::kAgentAsksRefusedTotal, "replies-full", s.replies_refused},
          {&contract::kAgentAsksRefusedTotal, "foreign", s.asks_foreign},
          {&contract::kAgentRelearnsTotal, {}, s.relearns},
          {&contract::kLimitHitsTotal, "agent-blocks", stream.left_out}};
}

bool has_worker(const MetricSpec& metric) { return metric.labels[0] == contract::kWorkerLabel; }

}  // namespace

void AgentMetrics::advance(Totals& totals, const StreamView& stream) {
  const std::string& worker = stream.name.worker;
  for (const StreamCount& count : counts_of(stream)) {
    std::uint64_t& last = totals[{count.metric->name, count.label}];
    if (count.total < last) last = 0;  // another stream of this name began meanwhile
    const auto more = static_cast<double>(count.total - std::exchange(last, count.total));
    if (!has_worker(*count.metric)) {
      // A metric without a worker is shared: it is not created before it counts something.
      if (more > 0) metrics_.counter(*count.metric, {count.label}).add(more);
    } else if (count.label.empty()) {
      metrics_.counter(*count.metric, {worker}).add(more);
    } else {
      metrics_.counter(*count.metric, {worker, count.label}).add(more);
    }
  }
}

void AgentMetrics::tell(std::span<const StreamView> streams) {
  const MutexLock lock(mutex_);
  std::map<std::string, WorkerSum> workers;
  for (const StreamView& stream : streams) {
    advance(totals_[{stream.name.worker, stream.name.rank}], stream);
    WorkerSum& sum = workers[stream.name.worker];
    sum.open += stream.epoch ? 1 : 0;
    sum.memory_bytes += stream.memory_bytes;
    for (std::size_t i = 0; i < kTiers.size(); ++i) sum.blocks[i] += stream.digest.tiers[i].count;
  }
  for (const auto& [worker, sum] : workers) {
    metrics_.gauge(contract::kAgentStreamsOpen, {worker}).set(static_cast<double>(sum.open));
    metrics_.gauge(contract::kAgentMemoryBytes, {worker})
        .set(static_cast<double>(sum.memory_bytes));
    for (std::size_t i = 0; i < kTiers.size(); ++i) {
      metrics_.gauge(contract::kAgentBlocks, {worker, kTiers[i]})
          .set(static_cast<double>(sum.blocks[i]));
    }
  }
  forget_others(streams);
}

void AgentMetrics::forget_others(std::span<const StreamView> streams) {
  std::set<Rank> present;
  std::set<std::string> workers;
  for (const StreamView& stream : streams) {
    present.emplace(stream.name.worker, stream.name.rank);
    workers.insert(stream.name.worker);
  }
  std::erase_if(totals_, [&](const auto& rank) {
    // A worker's series stay as long as one of its ranks has a stream.
    if (!workers.contains(rank.first.first)) metrics_.remove_worker(rank.first.first);
    return !present.contains(rank.first);
  });
}

}  // namespace sightline::agent
