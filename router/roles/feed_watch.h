// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "router/prompt/prepare/model.h"
#include "router/roles/feeds.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::roles {

// Connects the fleet to its feeds. New feeds are followed, here or by their agents, and removed
// ones are dropped.
// Thread safety: feed_ready() and feed_removed() as the fleet calls them.
class FeedWatch {
 public:
  // All outlive this object. `scope_model` is the first served model name, as for requests.
  FeedWatch(const Feeds& feeds, const prepare::LoadedModel& model, std::string scope_model);

  // Follows a rank's feed. In a process without agents, the feed of a worker with an agent is
  // ignored.
  void feed_ready(const fleet::Worker& worker, const fleet::Rank& rank);
  // Stops following a feed, and clears its cache.
  void feed_removed(CacheId cache);

 private:
  // Reads the engine's events in this process.
  void read_here(const fleet::Worker& worker, const fleet::Rank& rank);

  // Where the feeds are followed.
  const Feeds& feeds_;
  // For the placeholder tokens, which mark images in events.
  const prepare::LoadedModel& model_;
  const std::string scope_model_;
};

}  // namespace sightline::roles
