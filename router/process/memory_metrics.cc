// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/process/memory_metrics.h"

#include <string_view>
#include <utility>

#include "common/base/out_of_memory.h"
#include "common/contract/metrics_process.h"
#include "common/runtime/worker_thread.h"

namespace sightline::process {

MemoryMetrics::MemoryMetrics(const MemoryLedger& ledger, runtime::Metrics& metrics)
    : metrics_(metrics), failures_(metrics.counter(contract::kAllocationFailuresTotal)) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool is_share = i < kMemoryShares.size();
    const std::string_view name = is_share ? name_of(kMemoryShares[i]) : std::string_view("all");
    rows_[i] = {.budget = is_share ? &ledger.share(kMemoryShares[i]) : &ledger.whole(),
                .held = metrics.gauge(contract::kMemoryBytes, {name}),
                .limit = metrics.gauge(contract::kMemoryLimitBytes, {name}),
                .refused = metrics.counter(contract::kMemoryRefusedTotal, {name})};
  }
}

void MemoryMetrics::refresh() {
  const std::uint64_t failures = allocation_failures();
  // The sources count totals, so only the difference since the last scrape is added.
  failures_.add(static_cast<double>(failures - std::exchange(failures_counted_, failures)));
  for (const FailedSteps& failed : failed_steps()) {
    const std::uint64_t before = std::exchange(steps_counted_[failed.thread], failed.count);
    metrics_.counter(contract::kThreadAllocationFailuresTotal, {failed.thread})
        .add(static_cast<double>(failed.count - before));
  }
  for (ShareRow& row : rows_) {
    row.held.set(static_cast<double>(row.budget->held()));
    row.limit.set(static_cast<double>(row.budget->bytes_max()));
    const std::uint64_t refused = row.budget->refused();
    row.refused.add(static_cast<double>(refused - std::exchange(row.counted, refused)));
  }
}

}  // namespace sightline::process
