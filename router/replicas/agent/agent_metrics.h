// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/mutex.h"
#include "common/runtime/metrics.h"

#include "router/replicas/agent/rank_stream.h"

namespace sightline::agent {

// Metrics of streams, by worker. Counters rise by what was counted since the last call of `tell()`.
// Thread safety: all methods from any thread.
class AgentMetrics {
 public:
  // `metrics` outlives this object.
  explicit AgentMetrics(runtime::Metrics& metrics) : metrics_(metrics) {}

  // Sets the metrics to the present state of all streams. The series of workers without a stream
  // are removed.
  void tell(std::span<const StreamView> streams) SL_EXCLUDES(mutex_);

 private:
  // The totals of the last call, by metric and label.
  using Totals = std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>;
  // Worker and rank.
  using Rank = std::pair<std::string, std::uint32_t>;

  // Raises the counters of a stream.
  void advance(Totals& totals, const StreamView& stream) SL_REQUIRES(mutex_);
  // Removes what belongs to streams that are gone.
  void forget_others(std::span<const StreamView> streams) SL_REQUIRES(mutex_);

  runtime::Metrics& metrics_;
  Mutex mutex_;
  std::map<Rank, Totals> totals_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::agent
