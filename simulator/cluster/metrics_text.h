// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/cluster/engine.h"
#include "simulator/faults/fault_plan.h"

namespace sightline::cluster {

// The counters of one data-parallel rank.
struct RankSource {
  const Engine* engine = nullptr;
  std::uint64_t requests_accepted = 0;
  // Queries of the processor cache.
  std::uint64_t media_queries = 0;
  std::uint64_t media_hits = 0;
};

// The data of an engine's page /metrics.
struct MetricsSource {
  std::string model_name;
  // At least one.
  std::vector<RankSource> ranks;
  const faults::FaultPlan* faults = nullptr;
};

// Returns Prometheus text with the names and labels of vLLM 0.32. Counters of the simulation itself
// have names with sl_sim_.
std::string metrics_text(const MetricsSource& source);

// The content type of this page.
inline constexpr std::string_view kMetricsContentType = "text/plain; version=1.0.0; charset=utf-8";

}  // namespace sightline::cluster
