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

// Metrics of streams, by worker. Counters rise by what came since the streams were told last.
// Thread safety: all methods from any thread.
class AgentMetrics {
 public:
  // Metrics outlive it.
  explicit AgentMetrics(runtime::Metrics& metrics) : metrics_(metrics) {}

  // All streams as they are now. The series of workers that have none any more go away.
  void tell(std::span<const StreamView> streams) SL_EXCLUDES(mutex_);

 private:
  // As last told, by metric and label.
  using Totals = std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>;
  using Rank = std::pair<std::string, std::uint32_t>;

  void advance(Totals& totals, const StreamView& stream) SL_REQUIRES(mutex_);
  void forget_others(std::span<const StreamView> streams) SL_REQUIRES(mutex_);

  runtime::Metrics& metrics_;
  Mutex mutex_;
  std::map<Rank, Totals> totals_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::agent
