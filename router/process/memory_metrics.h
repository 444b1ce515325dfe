// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "common/base/memory_ledger.h"
#include "common/runtime/metrics.h"

namespace sightline::process {

// The memory ledger as metrics: for each share the held bytes, the limit and the refusals.
// Thread safety: refresh() from one thread at a time.
class MemoryMetrics {
 public:
  // Both outlive this object.
  MemoryMetrics(const MemoryLedger& ledger, runtime::Metrics& metrics);

  // Sets the metrics. Called before each scrape.
  void refresh();

 private:
  // One share, and its metrics.
  struct ShareRow {
    const ByteBudget* budget = nullptr;
    runtime::Gauge held;
    runtime::Gauge limit;
    runtime::Counter refused;
    // Refusals counted so far.
    std::uint64_t counted = 0;
  };

  // For series that are created later.
  runtime::Metrics& metrics_;
  // Allocations that failed.
  const runtime::Counter failures_;
  std::uint64_t failures_counted_ = 0;
  // Failed steps counted so far, by thread.
  std::map<std::string, std::uint64_t> steps_counted_;
  // The last row is for all shares together.
  std::array<ShareRow, kMemoryShares.size() + 1> rows_;
};

}  // namespace sightline::process
