// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "common/contract/metric_spec.h"
#include "common/contract/metrics_agents.h"
#include "common/contract/metrics_load.h"
#include "common/contract/metrics_process.h"
#include "common/contract/metrics_replicas.h"
#include "common/contract/metrics_requests.h"
#include "common/contract/metrics_reuse.h"
#include "common/contract/metrics_selection.h"
#include "common/contract/metrics_workers.h"

// All metrics. Code gets its handles with these constants, and docs/metrics.md is generated from
// them. Names follow the rules of Prometheus: the unit is last, and counters end in _total.
namespace sightline::contract {

// In the order of the documentation.
inline constexpr auto kMetricTable = [] {
  std::array<const MetricSpec*, kRequestsMetrics.size() + kReuseMetrics.size() +
                                    kWorkersMetrics.size() + kProcessMetrics.size() +
                                    kReplicasMetrics.size() + kLoadMetrics.size() +
                                    kSelectionMetrics.size() + kAgentsMetrics.size()>
      all{};
  auto* next = all.data();
  const auto add = [&next](const auto& metrics) {
    next = std::copy(metrics.begin(), metrics.end(), next);
  };
  add(kRequestsMetrics);
  add(kReuseMetrics);
  add(kWorkersMetrics);
  add(kProcessMetrics);
  add(kReplicasMetrics);
  add(kLoadMetrics);
  add(kSelectionMetrics);
  add(kAgentsMetrics);
  return all;
}();

}  // namespace sightline::contract
