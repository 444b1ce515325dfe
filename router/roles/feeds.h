// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>

#include "common/base/clock.h"
#include "common/base/ids.h"

#include "router/cache/operations/facts.h"
#include "router/cache/subscriber/event_subscriber.h"
#include "router/replicas/followed/followed_feeds.h"

namespace sightline::roles {

// What other parts ask about the feeds of caches, no matter if this process or an agent reads the
// engine. Of an unknown cache nothing is known, and calls do nothing.
// Thread safety: all methods from any thread.
class Feeds {
 public:
  // Both outlive this object. `by_agents` is null in a process that follows no agents.
  Feeds(subscriber::EventSubscriber& here, followed::FollowedFeeds* by_agents)
      : here_(here), by_agents_(by_agents) {}

  // The facts of the cache. Nothing: the cache is not followed.
  [[nodiscard]] std::optional<operations::CacheFacts> facts(CacheId cache) const;
  // When the last message of its engine arrived. Instant{}: never.
  [[nodiscard]] Instant heard_at(CacheId cache) const;
  // Finds out, soon after the return, which announcements of the engine are applied.
  void look(CacheId cache) const;
  // Drops the blocks of the cache and loads them again (resync). If an agent reads the engine, the
  // agent decides how.
  void relearn(CacheId cache, bool from_replay) const;
  // Loads all blocks of the cache into the index again, soon after the return. Returns false if
  // this is not possible.
  [[nodiscard]] bool ask_again(CacheId cache) const;
  // Stops following the cache.
  void remove(CacheId cache) const;

  // The reader of this process's own engines.
  [[nodiscard]] subscriber::EventSubscriber& here() const { return here_; }
  // Null in a process that follows no agents.
  [[nodiscard]] followed::FollowedFeeds* by_agents() const { return by_agents_; }

 private:
  subscriber::EventSubscriber& here_;
  followed::FollowedFeeds* const by_agents_;
};

}  // namespace sightline::roles
