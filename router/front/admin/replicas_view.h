// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/nats/connection.h"
#include "common/runtime/metrics.h"

#include "router/cache/index/prefix_index.h"
#include "router/front/admin/replica_metrics.h"
#include "router/replicas/followed/followed_feeds.h"
#include "router/replicas/membership/membership.h"

namespace sightline::admin {

// Shows what this process knows about its peers: which ones exist, what their agents publish, and
// how much is applied.
//
// Thread safety: any thread may call any method. Call add_part() before the others.
class ReplicasView {
 public:
  // All must live longer.
  struct Deps {
    // The connections for single messages, and for messages in batches.
    const nats::Connection& control;
    const nats::Connection& events;
    const membership::Membership& membership;
    const followed::FollowedFeeds& feeds;
    // For the digests of the blocks that the index holds.
    const index::IndexStatistics& index;
    const Clock& clock;
  };
  // The metrics must live longer too.
  ReplicasView(const Deps& sources, runtime::Metrics& metrics)
      : sources_(sources), metrics_(metrics), stream_metrics_(metrics, sources.clock) {}

  // Adds a field to the answer. `json` returns its value.
  void add_part(std::string name, std::function<std::string()> json);

  // GET /v1/replicas:
  // {"name","instance","scope","revision","nats":[…],"members":[…],"streams":[…],…}.
  [[nodiscard]] std::string json() const;

  // Called by the fleet. A stream is removed here before the router stops to follow it.
  void feed_ready(CacheId cache) { stream_metrics_.follow(cache); }
  void feed_removed(CacheId cache) { stream_metrics_.forget(cache, sources_.feeds.status(cache)); }

  // Updates the metrics with the same facts. Call it before each scrape.
  void refresh();

 private:
  const Deps sources_;
  runtime::Metrics& metrics_;
  ReplicaMetrics stream_metrics_;
  std::vector<std::pair<std::string, std::function<std::string()>>> parts_;
};

}  // namespace sightline::admin
