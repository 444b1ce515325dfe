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
#include "router/cache/subscriber/follower.h"
#include "router/cache/subscriber/zmq_poller.h"

namespace sightline::subscriber {

struct Order {
  FeedEndpoints endpoints;
  events::NormaliserOptions normaliser;
};

struct Command {
  enum class Kind : std::uint8_t { Follow, Forget, Relearn, RelearnByReplay, LookedUp, Look };
  Kind kind = Kind::Follow;
  CacheId cache;
  std::unique_ptr<const Order> order = nullptr;  // to follow
};

// What others have for the thread. Look-ups under way may hold it longer than the subscriber is.
struct Inbox {
  Mutex mutex;  // held for memory work only
  std::vector<Command> commands SL_GUARDED_BY(mutex);
  ZmqPoller poller;

  void push(Command command) {
    {
      const MutexLock lock(mutex);
      commands.push_back(std::move(command));
    }
    poller.wake();
  }
  std::vector<Command> take() {
    std::vector<Command> taken;
    const MutexLock lock(mutex);
    taken.swap(commands);
    return taken;
  }
};

}  // namespace sightline::subscriber
