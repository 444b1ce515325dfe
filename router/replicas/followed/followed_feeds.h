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
#include "router/replicas/followed/stream_status.h"
#include "router/replicas/follower/options.h"
#include "router/replicas/frames/stream_message.h"

namespace sightline::followed {

// Limits on the streams of a router.
struct FollowedOptions {
  // The times and limits of each stream.
  follower::FollowerOptions follower = {};
  // The most messages and bytes that are received and not yet applied, of one stream and of all
  // streams. The router drops further ones, counts them as lost and requests them again.
  // held_bytes_max is the setting `events.held_bytes_max`.
  std::size_t stream_messages_max = 16'384;
  std::size_t stream_bytes_max = std::size_t{16} << 20U;
  std::size_t held_bytes_max = std::size_t{512} << 20U;
  // A second budget for these bytes. It outlives the connections. Null: no second budget.
  ByteBudget* memory = nullptr;
  // Called when a cache's facts have changed, except its last sequence and caught_up. The first
  // call comes soon after add(). It runs on the thread sl-replica, which reads nothing meanwhile.
  // So it must be quick.
  std::function<void(CacheId, const operations::CacheFacts&)> on_change = nullptr;
};

// The age of messages that arrive over NATS, by this process's own clock.
struct NatsFreshness {
  // How long a message of this process takes back to it. If the present one has been under way
  // longer, that time.
  Duration round_trip{};
  // Why received messages are too old to count, as one sentence that does not change while it
  // holds. Empty: a message that this process sent within FollowerOptions::stale_after has come
  // back.
  std::string stale;
};

// Follows the streams of agents over NATS, one for each cache, and applies them to the index. Its
// own thread, sl-replica, gives each stream a short turn in order. A stream that floods therefore
// delays the others little.
// Thread safety: all methods from any thread.
class FollowedFeeds {
 public:
  // The objects that it uses. All outlive it.
  struct Deps {
    // The connection on which it receives.
    nats::Connection& events;
    // The connection on which it sends requests.
    nats::Connection& control;
    const contract::Subjects& subjects;
    const envelope::Sealer& sealer;
    // The index that it writes, and what that index holds.
    index::IndexWriter& index;
    const index::IndexStatistics& held;
    index::RemovalJournal& removals;
    const Clock& clock;
    // A name that no other process has. Agents address replies to it.
    std::string reader;
    // Returns a random number, on any thread.
    std::function<std::uint64_t()> draw;
  };
  FollowedFeeds(FollowedOptions options, const Deps& deps);
  // Ends the thread. The streams of NATS are unsubscribed, the index stays as it is.
  ~FollowedFeeds();
  FollowedFeeds(const FollowedFeeds&) = delete;
  FollowedFeeds& operator=(const FollowedFeeds&) = delete;

  // Follows a stream, from soon after the return on. The cache must not be followed already.
  void add(CacheId cache, frames::StreamName stream);
  // Stops following the cache and clears it in the index, soon after the return. Ignores an unknown
  // cache.
  void remove(CacheId cache);

  // Requests that the agent reads its engine's events, so facts.caught_up advances. Ignores an
  // unknown cache.
  void look(CacheId cache);
  // The held blocks contradict the engine: requests a resync from the agent. The pause between two
  // requests is at least FollowerOptions::relearn_pause_min. Ignores an unknown cache.
  void relearn(CacheId cache);

  // Requests a dump of all that the engine holds, because the index has room again. Ignores an
  // unknown cache.
  void ask_again(CacheId cache);

  // The status after the stream's last message or deadline. Nothing if the cache is not followed.
  [[nodiscard]] std::optional<FollowedStatus> status(CacheId cache) const;
  // The statuses of all caches, in the order of their ids.
  [[nodiscard]] std::vector<FollowedStatus> statuses() const;
  // How old messages of NATS are, see NatsFreshness.
  [[nodiscard]] NatsFreshness nats() const;
  // Bytes that are received and not applied, of all streams.
  [[nodiscard]] std::size_t held_bytes() const;
  // How long the thread has been busy since its last wait. Zero while it waits. A large value shows
  // a blocked thread.
  [[nodiscard]] Duration turn_age() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::followed
