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

#include "router/replicas/followed/status.h"

namespace sightline::admin {

// Frames that are known of and not applied.
std::uint64_t behind_of(const followed::FollowedStatus& status);

// Metrics of agents' streams, from what is known of each. Counters rise by what came since they
// were told last; a stream that ends has the rest of its counts added.
// Thread safety: all methods from any thread.
class ReplicaMetrics {
 public:
  // Both outlive it.
  ReplicaMetrics(runtime::Metrics& metrics, const Clock& clock)
      : metrics_(metrics), clock_(clock) {}

  // Streams that are not followed (any more) are ignored: their worker's series may be gone.
  void follow(CacheId cache);
  // last: what is known of it at its end.
  void forget(CacheId cache, const std::optional<followed::FollowedStatus>& last);
  // All streams as they are now.
  void tell(std::span<const followed::FollowedStatus> streams);

 private:
  struct Gauges;
  using WorkerGauges = std::map<std::string_view, Gauges>;
  // By metric and label, as last told.
  using Totals = std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>;

  void advance(const followed::FollowedStatus& status, Totals& totals) SL_REQUIRES(mutex_);
  void advance_parts(const followed::FollowedStatus& status, Totals& totals) SL_REQUIRES(mutex_);
  void set_gauges(const WorkerGauges& workers) SL_REQUIRES(mutex_);
  // Unix time in seconds.
  [[nodiscard]] double timestamp(Instant at) const;

  runtime::Metrics& metrics_;
  const Clock& clock_;
  Mutex mutex_;
  std::map<CacheId, Totals> streams_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::admin
