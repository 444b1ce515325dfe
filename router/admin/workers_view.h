// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/runtime/metrics.h"

#include "router/audit/audit.h"
#include "router/events/engine_feed.h"
#include "router/fleet/fleet.h"
#include "router/index/prefix_index.h"
#include "router/subscriber/zmq_subscriber.h"

namespace sightline::admin {

// What is known of every worker, for people and machines.
// Thread safety: json() from any thread, refresh() from one at a time.
class WorkersView {
 public:
  // All outlive the view.
  WorkersView(const fleet::Fleet& fleet, const subscriber::EventSubscriber& subscriber,
              const index::PrefixIndex& index, const audit::Audit& audit)
      : fleet_(fleet), subscriber_(subscriber), index_(index), audit_(audit) {}

  // GET /v1/workers: a JSON array, one object per worker in the order of the configuration.
  [[nodiscard]] std::string json() const;

  // Brings the metrics that follow from the same facts up to date; called before each scrape.
  void refresh(runtime::Metrics& metrics);

 private:
  // Raises a counter to a total that is kept elsewhere.
  void advance(const runtime::Counter& counter, const std::string& key, std::uint64_t total);
  void refresh_engine(const std::string& worker, const events::EngineStatus& status,
                      runtime::Metrics& metrics);

  const fleet::Fleet& fleet_;
  const subscriber::EventSubscriber& subscriber_;
  const index::PrefixIndex& index_;
  const audit::Audit& audit_;
  std::map<std::string, std::uint64_t> totals_;  // as last seen, by engine and counter
};

}  // namespace sightline::admin
