// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "common/base/clock.h"
#include "common/runtime/metrics.h"

#include "router/cache/audit/audit.h"
#include "router/cache/audit/room_watch.h"
#include "router/cache/index/prefix_index.h"
#include "router/cache/subscriber/event_subscriber.h"
#include "router/front/admin/event_metrics.h"
#include "router/replicas/followed/followed_feeds.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::admin {

// Shows what the router knows about every worker, for people and programs. Thread safety: any
// thread may call any method.
class WorkersView {
 public:
  struct Deps {
    const fleet::Fleet& fleet;
    const subscriber::EventSubscriber& subscriber;
    // Null: no agents are followed.
    const followed::FollowedFeeds* followed;
    const index::IndexStatistics& index;
    const audit::Audit& audit;
    // Why the index lacks blocks of a rank.
    const audit::RoomWatch& rooms;
    const Clock& clock;
  };

  // All must live longer.
  WorkersView(const Deps& sources, runtime::Metrics& metrics)
      : sources_(sources), metrics_(metrics), event_metrics_(metrics) {}

  // GET /v1/workers: a JSON array with one object per worker, in the order of the configuration.
  [[nodiscard]] std::string json() const;

  // Called by the fleet. A feed is removed here before the router stops to follow it.
  void feed_ready(const fleet::Worker& worker, const fleet::Rank& rank);
  void feed_removed(CacheId cache);

  // Updates the metrics with the same facts. Call it before each scrape.
  void refresh();

 private:
  // Sets the gauges of the engine's pace and load.
  void tell_engine(const fleet::Worker& worker) const;

  const Deps sources_;
  runtime::Metrics& metrics_;
  EventMetrics event_metrics_;
};

}  // namespace sightline::admin
