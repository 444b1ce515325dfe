// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/runtime/metrics.h"

#include "router/replicas/followed/stream_status.h"

namespace sightline::admin {

// Returns the number of frames that exist and are not applied.
std::uint64_t behind_of(const followed::FollowedStatus& status);

// The metrics of agents' streams, computed from the status of each. Counters rise by the difference
// to the last status. When a stream ends, its last counts are added.
//
// Thread safety: any thread may call any method.
class ReplicaMetrics {
 public:
  // Both must live longer.
  ReplicaMetrics(runtime::Metrics& metrics, const Clock& clock)
      : metrics_(metrics), clock_(clock) {}

  // Starts to count a stream. Streams that are not followed are ignored, because the series of
  // their worker may be gone.
  void follow(CacheId cache);
  // Stops to count a stream. `last` is its last status.
  void forget(CacheId cache, const std::optional<followed::FollowedStatus>& last);
  // Counts all streams.
  void tell(std::span<const followed::FollowedStatus> streams);

 private:
  struct Gauges;
  using WorkerGauges = std::map<std::string_view, Gauges>;
  // The last values, by metric and label.
  using Totals = std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>;

  // Adds to the counters of the worker what the status has counted since the last one.
  void advance(const followed::FollowedStatus& status, Totals& totals) SL_REQUIRES(mutex_);
  // The same for counters with a further label.
  void advance_parts(const followed::FollowedStatus& status, Totals& totals) SL_REQUIRES(mutex_);
  // Sets the gauges of the workers in this status report.
  void set_gauges(const WorkerGauges& workers) SL_REQUIRES(mutex_);
  // Unix time in seconds.
  [[nodiscard]] double timestamp(Instant at) const;

  runtime::Metrics& metrics_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<CacheId, Totals> streams_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::admin
