// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "router/cache/subscriber/zmq_subscriber.h"
#include "router/prompt/prepare/model.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::roles {

// Joins the fleet and the event subscriber: feeds that become known are followed, those that are
// given up are forgotten.
// Thread safety: feed_ready and feed_removed as the fleet calls them.
class FeedWatch {
 public:
  // All outlive this; scope_model as for requests.
  FeedWatch(subscriber::EventSubscriber& subscriber, const prepare::LoadedModel& model,
            std::string scope_model);

  void feed_ready(const fleet::Worker& worker, const fleet::Rank& rank);
  void feed_removed(CacheId cache);

 private:
  subscriber::EventSubscriber& subscriber_;
  const prepare::LoadedModel& model_;
  const std::string scope_model_;
};

}  // namespace sightline::roles
