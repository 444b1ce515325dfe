// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/mutex.h"
#include "common/nats/inbox.h"
#include "common/runtime/worker_thread.h"

#include "router/replicas/followed/doorbell.h"
#include "router/replicas/followed/followed_feeds.h"
#include "router/replicas/followed/followed_stream.h"
#include "router/replicas/followed/round_trip.h"
#include "router/replicas/followed/stream_log.h"

// What the callers of FollowedFeeds and its thread share. For followed_feeds.cc and
// followed_thread.cc alone.
namespace sightline::followed {

inline constexpr Instant kNoTurn = Instant::max();
inline constexpr nats::Inbox::Limits kReturnsLimits{.messages_max = 8'192, .bytes_max = 1U << 20U};

inline constexpr Duration kRoundTripEvery = std::chrono::seconds(1);

struct Command {
  enum class Kind : std::uint8_t { Follow, Forget, Look, Relearn, AskAgain };
  Kind kind = Kind::Follow;
  CacheId cache;
  frames::StreamName stream = {};  // to follow
};

struct Followed {
  std::shared_ptr<Doorbell::Bell> bell;
  std::shared_ptr<nats::Inbox> inbox;
  std::unique_ptr<FollowedStream> stream;
  Instant due = Instant::max();  // as in the queue of deadlines
  bool is_busy = false;          // waits for its turn
  bool is_broken = false;        // a step of it had no memory: it is followed anew
};

struct FollowedFeeds::State {
  State(FollowedOptions with, const Around& of)
      : options(std::move(with)),
        around(of),
        budget(std::make_shared<ByteBudget>(
            options.held_bytes_max,
            ByteBudget::Within{.parent = options.memory, .limit = "events-held-bytes-max"})),
        returns_subject(of.subjects.returns(of.reader)),
        round_trip(std::min(kRoundTripEvery, options.follower.stale_after / 5), of.draw,
                   of.clock.now()) {}

  void push(Command command);
  std::vector<Command> take_commands();
  void run(const std::stop_token& stop);
  void turn();
  void carry_out(const Command& command);
  void stream_step(CacheId cache, const std::function<void(Followed&)>& step);
  void mend();
  void ring(CacheId cache);
  void ring_all();
  [[nodiscard]] std::map<CacheId, FollowedStatus> all_statuses() const;
  void follow(CacheId cache, frames::StreamName stream);
  void forget(CacheId cache);
  void unsubscribe(const Followed& followed) const;
  void read_some();
  bool read_turn(Followed& followed, bool& is_used);
  void meet_deadlines();
  void leave_deadlines(CacheId cache, Followed& followed);
  void settle(CacheId cache, Followed& followed);
  void measure_nats();
  void publish(FollowedStatus status);
  [[nodiscard]] Instant next_turn() const;
  [[nodiscard]] bool is_wanted(CacheId cache) const;

  const FollowedOptions options;
  const Around around;
  const std::shared_ptr<ByteBudget> budget;
  const std::shared_ptr<Doorbell> door = std::make_shared<Doorbell>();

  mutable Mutex mutex;  // held for memory work only
  std::vector<Command> commands SL_GUARDED_BY(mutex);
  std::map<CacheId, FollowedStatus> statuses SL_GUARDED_BY(mutex);  // of all that are wanted

  std::atomic<Instant> turn_began = kNoTurn;

  // Of the messages that this process sends to itself.
  const std::string returns_subject;
  const std::shared_ptr<nats::Inbox> returns = std::make_shared<nats::Inbox>(
      kReturnsLimits,
      nats::Inbox::Among{.budget = nullptr, .told = [door = door] { door->wake(); }});
  RoundTrip round_trip SL_GUARDED_BY(mutex);

  // The thread's own.
  std::vector<Command> taken;
  std::size_t carried_out = 0;  // of these
  bool has_broken = false;      // some stream is
  bool has_lost_turn = false;   // whose bell rang was perhaps lost
  std::map<CacheId, Followed> followed;
  std::uint64_t readers = 0;                        // that there ever were
  std::deque<CacheId> busy;                         // whose inboxes may have more, each once
  std::set<std::pair<Instant, CacheId>> deadlines;  // of the streams that have one
  Instant nats_fresh_at{};                          // as of round_trip
  bool may_reclaim = false;                         // the index may have memory to give back
  StreamLog lines;

  std::optional<WorkerThread> thread;  // ends before all of the above
};

}  // namespace sightline::followed
