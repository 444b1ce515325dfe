// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"

#include "router/cache/events/normaliser_options.h"
#include "router/cache/subscriber/rank_connection.h"
#include "router/cache/subscriber/zmq_poller.h"

namespace sightline::subscriber {

// What a follower needs to begin.
struct FollowOrder {
  FeedEndpoints endpoints;
  events::NormaliserOptions normaliser;
};

// A request of another thread for one rank. LookedUp: a name that its follower asked for has been
// looked up.
struct FeedCommand {
  // Follow and Forget begin and end a rank. Relearn loads its blocks from new messages,
  // RelearnByReplay from a replay. Look reads its waiting messages.
  enum class Kind : std::uint8_t { Follow, Forget, Relearn, RelearnByReplay, LookedUp, Look };
  Kind kind = Kind::Follow;
  CacheId cache;
  // Only for Follow.
  std::unique_ptr<const FollowOrder> order = nullptr;
};

// Commands for the subscriber's thread. Running look-ups may keep the inbox alive after the
// subscriber has ended.
struct Inbox {
  // Held for memory work only, so a caller of push() never waits for the subscriber's work.
  Mutex mutex;
  std::vector<FeedCommand> commands SL_GUARDED_BY(mutex);
  // The thread waits in it, and push() wakes it.
  ZmqPoller poller;

  // Adds a command and wakes the thread. Any thread may call it.
  void push(FeedCommand command) {
    {
      const MutexLock lock(mutex);
      commands.push_back(std::move(command));
    }
    poller.wake();
  }
  // Returns all commands since the last call, in their order.
  std::vector<FeedCommand> take() {
    std::vector<FeedCommand> taken;
    const MutexLock lock(mutex);
    taken.swap(commands);
    return taken;
  }
};

}  // namespace sightline::subscriber
