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

// The ledger as metrics.
// Thread safety: refresh() from one thread at a time.
class MemoryMetrics {
 public:
  // Both outlive it.
  MemoryMetrics(const MemoryLedger& ledger, runtime::Metrics& metrics);

  // Before each scrape.
  void refresh();

 private:
  struct Row {
    const ByteBudget* budget = nullptr;
    runtime::Gauge held;
    runtime::Gauge limit;
    runtime::Counter refused;
    std::uint64_t counted = 0;  // of the budget's refusals
  };

  runtime::Metrics& metrics_;
  const runtime::Counter failures_;
  std::uint64_t failures_counted_ = 0;
  std::map<std::string, std::uint64_t> steps_counted_;  // that failed, by thread
  std::array<Row, kMemoryShares.size() + 1> rows_;      // the last: all shares
};

}  // namespace sightline::process
