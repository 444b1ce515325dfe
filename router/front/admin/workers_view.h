// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "common/base/clock.h"
#include "common/runtime/metrics.h"

#include "router/cache/audit/audit.h"
#include "router/cache/audit/room_watch.h"
#include "router/cache/index/prefix_index.h"
#include "router/cache/subscriber/zmq_subscriber.h"
#include "router/front/admin/event_metrics.h"
#include "router/replicas/followed/followed_feeds.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::admin {

// What is known of every worker, for people and machines.
// Thread safety: all methods from any thread.
class WorkersView {
 public:
  struct Sources {
    const fleet::Fleet& fleet;
    const subscriber::EventSubscriber& subscriber;
    const followed::FollowedFeeds* followed;  // null: no agent is heard
    const index::IndexStatistics& index;
    const audit::Audit& audit;
    const audit::RoomWatch& rooms;
    const Clock& clock;
  };

  // All outlive the view.
  WorkersView(const Sources& sources, runtime::Metrics& metrics)
      : sources_(sources), metrics_(metrics), event_metrics_(metrics) {}

  // GET /v1/workers: a JSON array, one object per worker in the order of the configuration.
  [[nodiscard]] std::string json() const;

  // As the fleet tells; a feed is removed here before it is not followed any more.
  void feed_ready(const fleet::Worker& worker, const fleet::Rank& rank);
  void feed_removed(CacheId cache);

  // Brings the metrics that follow from the same facts up to date; called before each scrape.
  void refresh();

 private:
  void tell_engine(const fleet::Worker& worker) const;

  const Sources sources_;
  runtime::Metrics& metrics_;
  EventMetrics event_metrics_;
};

}  // namespace sightline::admin
