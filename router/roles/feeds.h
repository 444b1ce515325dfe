// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>

#include "common/base/clock.h"
#include "common/base/ids.h"

#include "router/cache/operations/facts.h"
#include "router/cache/subscriber/zmq_subscriber.h"
#include "router/replicas/followed/followed_feeds.h"

namespace sightline::roles {

// What caches' feeds are asked, whether their engines are read here or by agents. Of one that
// nobody follows nothing is known, and nothing happens.
// Thread safety: all methods from any thread.
class Feeds {
 public:
  // Both outlive it. by_agents is null where no agents are heard.
  Feeds(subscriber::EventSubscriber& here, followed::FollowedFeeds* by_agents)
      : here_(here), by_agents_(by_agents) {}

  [[nodiscard]] std::optional<operations::CacheFacts> facts(CacheId cache) const;
  // When something of its engine was heard last; Instant{}: never.
  [[nodiscard]] Instant heard_at(CacheId cache) const;
  // Have it found out, soon after the return, how far its announcements are applied.
  void look(CacheId cache) const;
  // Have its blocks forgotten and learnt anew; how, is up to an agent.
  void relearn(CacheId cache, bool from_replay) const;
  // Have all that it holds told to the index again, soon after the return. False: nobody can.
  [[nodiscard]] bool ask_again(CacheId cache) const;
  // It is not followed any more.
  void remove(CacheId cache) const;

  [[nodiscard]] subscriber::EventSubscriber& here() const { return here_; }
  [[nodiscard]] followed::FollowedFeeds* by_agents() const { return by_agents_; }

 private:
  subscriber::EventSubscriber& here_;
  followed::FollowedFeeds* const by_agents_;
};

}  // namespace sightline::roles
