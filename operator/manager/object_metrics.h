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

// What statuses of MultimodalRouters say, as metrics: of all together, and of each.
// Thread safety: tell() from any thread.
class ObjectMetrics {
 public:
  // Objects with series of their own, the first by namespace and name; the others are counted in
  // those of all together, and as overflow. Three series each of one metric fit its limit.
  static constexpr std::size_t kShownMax = runtime::kMetricSeriesMax / 3;

  // Both must outlive all scrapes.
  explicit ObjectMetrics(runtime::Metrics& metrics);

  // The last verdict on an object; null: the object is gone.
  void tell(const object::Key& key, const crd::Status* status);

 private:
  struct Row {
    crd::RolloutPhase phase = crd::RolloutPhase::Idle;
    std::map<std::string, crd::ConditionStatus> conditions;  // by type
    crd::PoolStatus workers;                                 // of all pools together
  };
  using Rows = std::map<object::Key, Row>;

  static Row row_of(const crd::Status& status);
  void refresh();
  void show_together(const Rows& rows);
  void show(const object::Key& key, const Row& row);
  void hide(const object::Key& key);

  runtime::Metrics& metrics_;
  Mutex mutex_;
  Rows rows_ SL_GUARDED_BY(mutex_);
  // Of refresh(), which runs once at a time.
  std::set<object::Key> shown_;
  std::set<std::string> conditions_;
};

}  // namespace sightline::manager
