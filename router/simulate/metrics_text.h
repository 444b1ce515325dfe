// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>

#include "router/simapi/media_input.h"
#include "router/simfault/fault_plan.h"
#include "router/simulate/engine.h"

namespace sightline::simulate {

// What an engine's /metrics page is made of.
struct MetricsSource {
  std::string model_name;
  std::uint64_t requests_accepted = 0;
  const Engine* engine = nullptr;
  const simfault::FaultPlan* faults = nullptr;
  const simapi::ProcessorCache* processor_cache = nullptr;
};

// Prometheus text with the names and labels of vLLM 0.32, and counters of the simulation itself
// under sl_sim_.
std::string metrics_text(const MetricsSource& source);

// Of that page.
inline constexpr std::string_view kMetricsContentType = "text/plain; version=1.0.0; charset=utf-8";

}  // namespace sightline::simulate
