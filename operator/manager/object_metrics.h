// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "common/base/mutex.h"
#include "common/runtime/metrics.h"

#include "operator/crd/status.h"
#include "operator/kube/object/resource.h"

namespace sightline::manager {

// Exports the statuses of MultimodalRouters as metrics: of all together, and of each.
// Thread safety: `tell()` from any thread.
class ObjectMetrics {
 public:
  // The most objects with their own series, the first by namespace and name. The others count in
  // the series of all objects, and as overflow. Each of these objects has three series of one
  // metric, which fits the metric's limit.
  static constexpr std::size_t kShownMax = runtime::kMetricSeriesMax / 3;

  // `metrics` and this object must outlive all scrapes.
  explicit ObjectMetrics(runtime::Metrics& metrics);

  // Records the latest status of an object. Null: the object is gone.
  void tell(const object::Key& key, const crd::Status* status);

 private:
  struct ObjectRow {
    crd::RolloutPhase phase = crd::RolloutPhase::Idle;
    // By type.
    std::map<std::string, crd::ConditionStatus> conditions;
    // The sum over all pools.
    crd::PoolStatus workers;
  };
  using Rows = std::map<object::Key, ObjectRow>;

  // The values of a status that the metrics show.
  static ObjectRow row_of(const crd::Status& status);
  // Sets all series. Runs before each scrape.
  void refresh();
  // Sets the series of all objects together.
  void show_together(const Rows& rows);
  // Sets the series of one object.
  void show(const object::Key& key, const ObjectRow& row);
  // Removes the series of one object.
  void hide(const object::Key& key);

  runtime::Metrics& metrics_;
  Mutex mutex_;
  Rows rows_ SL_GUARDED_BY(mutex_);
  // Only refresh() uses these. Two refreshes never run at the same time. `shown_` has the objects
  // with series, `conditions_` all types since the start.
  std::set<object::Key> shown_;
  std::set<std::string> conditions_;
};

}  // namespace sightline::manager
