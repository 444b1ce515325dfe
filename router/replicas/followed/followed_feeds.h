// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/contract/subjects.h"
#include "common/nats/connection.h"

#include "router/cache/index/prefix_index.h"
#include "router/cache/index/removal_journal.h"
#include "router/replicas/envelope/envelope.h"
#include "router/replicas/followed/status.h"
#include "router/replicas/follower/options.h"
#include "router/replicas/frames/message.h"

namespace sightline::followed {

struct FollowedOptions {
  follower::FollowerOptions follower = {};
  // Heard and not yet applied: of one stream, and of all together. What is more is dropped, counted
  // as lost, and asked for again.
  std::size_t stream_messages_max = 16'384;
  std::size_t stream_bytes_max = std::size_t{16} << 20U;
  std::size_t held_bytes_max = std::size_t{512} << 20U;
  ByteBudget* memory = nullptr;  // what these are charged to besides; outlives the connections
  // Told when something of a cache's facts has changed but its last sequence and caught_up, on the
  // thread of the feeds and before it reads on: must be quick. The first time soon after add().
  std::function<void(CacheId, const operations::CacheFacts&)> on_change = nullptr;
};

// How old what comes over NATS is at this process, by its own clock.
struct NatsFreshness {
  // The longest that a message of this process takes, or has been under way, back to it.
  Duration round_trip{};
  // Why what is received is too old to be counted, as one sentence that stays the same while it is
  // so; empty: what this process sent less than FollowerOptions::stale_after ago has come back.
  std::string stale;
};

// Follows what agents tell over NATS of many caches, each in its stream, and keeps the index as
// they say. A thread of its own, sl-replica, which gives each stream a short turn after the other,
// so that none has to wait for one that floods.
// Thread safety: all methods from any thread.
class FollowedFeeds {
 public:
  // All outlive it.
  struct Around {
    nats::Connection& events;   // on which is heard
    nats::Connection& control;  // on which is asked
    const contract::Subjects& subjects;
    const envelope::Sealer& sealer;
    index::IndexWriter& index;
    const index::IndexStatistics& held;
    index::RemovalJournal& removals;
    const Clock& clock;
    std::string reader;                   // a name that no other process has
    std::function<std::uint64_t()> draw;  // random; on any thread
  };
  FollowedFeeds(FollowedOptions options, const Around& around);
  ~FollowedFeeds();
  FollowedFeeds(const FollowedFeeds&) = delete;
  FollowedFeeds& operator=(const FollowedFeeds&) = delete;

  // Follows a stream from soon after the return on. The cache must not be followed already.
  void add(CacheId cache, frames::StreamName stream);
  // Stops following it and clears its cache, soon after the return. Unknown: nothing.
  void remove(CacheId cache);

  // Has the agent look at its engine's events: facts.caught_up moves on. Unknown: nothing.
  void look(CacheId cache);
  // What is held of it disagrees with the engine: the agent is told, unless it was lately, see
  // FollowerOptions::relearn_pause_min. Unknown: nothing.
  void relearn(CacheId cache);

  // Has the agent asked for all that its engine holds, for there is room for it in the index now.
  // Unknown: nothing.
  void ask_again(CacheId cache);

  // As of its last message or deadline; nothing when it is not followed.
  [[nodiscard]] std::optional<FollowedStatus> status(CacheId cache) const;
  // Of all, in the order of their ids.
  [[nodiscard]] std::vector<FollowedStatus> statuses() const;
  [[nodiscard]] NatsFreshness nats() const;
  // Of all streams: bytes heard and not applied.
  [[nodiscard]] std::size_t held_bytes() const;
  // How long the thread has been busy since it last waited; zero while it waits.
  [[nodiscard]] Duration turn_age() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::followed
