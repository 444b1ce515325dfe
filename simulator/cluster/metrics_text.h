// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/cluster/engine.h"
#include "simulator/faults/fault_plan.h"

namespace sightline::cluster {

// What is counted of one data-parallel rank.
struct RankSource {
  const Engine* engine = nullptr;
  std::uint64_t requests_accepted = 0;
  std::uint64_t media_queries = 0;  // of the processor cache
  std::uint64_t media_hits = 0;
};

// What an engine's /metrics page is made of.
struct MetricsSource {
  std::string model_name;
  std::vector<RankSource> ranks;  // at least one
  const faults::FaultPlan* faults = nullptr;
};

// Prometheus text with the names and labels of vLLM 0.32, and counters of the simulation itself
// under sl_sim_.
std::string metrics_text(const MetricsSource& source);

// Of that page.
inline constexpr std::string_view kMetricsContentType = "text/plain; version=1.0.0; charset=utf-8";

}  // namespace sightline::cluster
