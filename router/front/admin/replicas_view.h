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

// What this process knows of the others that it works with: who is there, what their agents tell
// and how far that is applied.
// Thread safety: all methods from any thread, add_part() before the others.
class ReplicasView {
 public:
  // All outlive the view.
  struct Sources {
    const nats::Connection& control;
    const nats::Connection& events;
    const membership::Membership& membership;
    const followed::FollowedFeeds& feeds;
    const index::IndexStatistics& index;
    const Clock& clock;
  };
  ReplicasView(const Sources& sources, runtime::Metrics& metrics)
      : sources_(sources), metrics_(metrics), stream_metrics_(metrics, sources.clock) {}

  // A further field of the answer, and what makes its value.
  void add_part(std::string name, std::function<std::string()> json);

  // GET /v1/replicas:
  // {"name","instance","scope","revision","nats":[…],"members":[…],"streams":[…],…}.
  [[nodiscard]] std::string json() const;

  // As the fleet tells; a stream is removed here before it is not followed any more.
  void feed_ready(CacheId cache) { stream_metrics_.follow(cache); }
  void feed_removed(CacheId cache) { stream_metrics_.forget(cache, sources_.feeds.status(cache)); }

  // Brings the metrics that follow from the same facts up to date; called before each scrape.
  void refresh();

 private:
  const Sources sources_;
  runtime::Metrics& metrics_;
  ReplicaMetrics stream_metrics_;
  std::vector<std::pair<std::string, std::function<std::string()>>> parts_;
};

}  // namespace sightline::admin
