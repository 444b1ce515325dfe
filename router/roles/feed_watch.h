// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "router/prompt/prepare/model.h"
#include "router/roles/feeds.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::roles {

// Joins the fleet and its feeds: those that become known are followed, here or by their agents,
// those that are given up are forgotten.
// Thread safety: feed_ready and feed_removed as the fleet calls them.
class FeedWatch {
 public:
  // All outlive this; scope_model as for requests.
  FeedWatch(const Feeds& feeds, const prepare::LoadedModel& model, std::string scope_model);

  // Of a worker with an agent nothing is heard where no agents are.
  void feed_ready(const fleet::Worker& worker, const fleet::Rank& rank);
  void feed_removed(CacheId cache);

 private:
  void read_here(const fleet::Worker& worker, const fleet::Rank& rank);

  const Feeds& feeds_;
  const prepare::LoadedModel& model_;
  const std::string scope_model_;
};

}  // namespace sightline::roles
