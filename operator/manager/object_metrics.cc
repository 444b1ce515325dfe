// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/object_metrics.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/contract/controller_metrics.h"
#include "common/contract/metrics_process.h"

#include "operator/crd/words.h"

namespace sightline::manager {
namespace {

constexpr std::string_view kReadyType = "Ready";
constexpr std::string_view kDesired = "desired";
constexpr std::string_view kReadyWorkers = "ready";
constexpr std::string_view kRoutable = "routable";

}  // namespace

using crd::ConditionStatus;
using crd::RolloutPhase;
using object::Key;

ObjectMetrics::ObjectMetrics(runtime::Metrics& metrics) : metrics_(metrics) {
  metrics.before_scrape([this] { refresh(); });
}

void ObjectMetrics::tell(const Key& key, const crd::Status* status) {
  if (status == nullptr) {
    const MutexLock lock(mutex_);
    rows_.erase(key);
    return;
  }
  ObjectRow row = row_of(*status);
  const MutexLock lock(mutex_);
  rows_.insert_or_assign(key, std::move(row));
}

ObjectMetrics::ObjectRow ObjectMetrics::row_of(const crd::Status& status) {
  ObjectRow row;
  row.phase = status.rollout.phase;
  for (const crd::Condition& one : status.conditions) row.conditions[one.type] = one.status;
  for (const crd::PoolStatus& pool : status.pools) {
    row.workers.desired += pool.desired;
    row.workers.ready += pool.ready;
    row.workers.routable += pool.routable;
  }
  return row;
}

void ObjectMetrics::refresh() {
  // A copy, so reconciliations do not wait for the metrics.
  Rows rows;
  {
    const MutexLock lock(mutex_);
    rows = rows_;
  }
  show_together(rows);
  std::set<Key> shown;
  for (const auto& [key, row] : rows) {
    if (shown.size() == kShownMax) break;
    show(key, row);
    shown.insert(key);
  }
  for (const Key& key : shown_) {
    if (!shown.contains(key)) hide(key);
  }
  shown_ = std::move(shown);
  if (rows.size() > kShownMax) {
    metrics_.counter(contract::kMetricOverflowTotal, {contract::kObjectReady.name}).add();
  }
}

void ObjectMetrics::show_together(const Rows& rows) {
  std::map<RolloutPhase, std::size_t> phases;
  std::map<std::pair<std::string, ConditionStatus>, std::size_t> verdicts;
  for (const auto& [key, row] : rows) {
    ++phases[row.phase];
    for (const auto& [type, status] : row.conditions) {
      ++verdicts[{type, status}];
      conditions_.insert(type);
    }
  }
  for (const auto phase : {RolloutPhase::Idle, RolloutPhase::InProgress, RolloutPhase::Paused,
                           RolloutPhase::Completed, RolloutPhase::Stuck}) {
    metrics_.gauge(contract::kObjects, {crd::word_of(phase)})
        .set(static_cast<double>(phases[phase]));
  }
  // Types without a condition too: their gauges go back to 0.
  for (const std::string& type : conditions_) {
    for (const auto status :
         {ConditionStatus::True, ConditionStatus::False, ConditionStatus::Unknown}) {
      metrics_.gauge(contract::kObjectsByCondition, {type, crd::word_of(status)})
          .set(static_cast<double>(verdicts[{type, status}]));
    }
  }
}

void ObjectMetrics::show(const Key& key, const ObjectRow& row) {
  const auto ready = row.conditions.find(std::string(kReadyType));
  const bool is_ready = ready != row.conditions.end() && ready->second == ConditionStatus::True;
  if (row.phase == RolloutPhase::Idle) {
    // A suspended object is not ready on purpose, so no alert must see it.
    metrics_.remove(contract::kObjectReady, {key.name_space, key.name});
  } else {
    metrics_.gauge(contract::kObjectReady, {key.name_space, key.name}).set(is_ready ? 1 : 0);
  }
  metrics_.gauge(contract::kObjectRolloutStuck, {key.name_space, key.name})
      .set(row.phase == RolloutPhase::Stuck ? 1 : 0);
  const auto workers = [&](std::string_view state, std::int64_t count) {
    metrics_.gauge(contract::kObjectWorkers, {key.name_space, key.name, state})
        .set(static_cast<double>(count));
  };
  workers(kDesired, row.workers.desired);
  workers(kReadyWorkers, row.workers.ready);
  workers(kRoutable, row.workers.routable);
}

void ObjectMetrics::hide(const Key& key) {
  metrics_.remove(contract::kObjectReady, {key.name_space, key.name});
  metrics_.remove(contract::kObjectRolloutStuck, {key.name_space, key.name});
  for (const auto state : {kDesired, kReadyWorkers, kRoutable}) {
    metrics_.remove(contract::kObjectWorkers, {key.name_space, key.name, state});
  }
}

}  // namespace sightline::manager
