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

// The state that the callers of FollowedFeeds and its thread share. Only followed_feeds.cc and
// followed_thread.cc include it.
namespace sightline::followed {

// The thread waits.
inline constexpr Instant kNoTurn = Instant::max();
// Limits on the inbox of messages that this process sends to itself. There is about one each
// second.
inline constexpr nats::Inbox::Limits kReturnsLimits{.messages_max = 8'192, .bytes_max = 1U << 20U};

// The longest pause between these messages.
inline constexpr Duration kRoundTripEvery = std::chrono::seconds(1);

// An order of a caller to the thread.
struct StreamCommand {
  enum class Kind : std::uint8_t { Follow, Forget, Look, Relearn, AskAgain };
  Kind kind = Kind::Follow;
  CacheId cache;
  frames::StreamName stream = {};  // for Follow
};

// A followed stream with its inbox. Only the thread uses it.
struct Followed {
  std::shared_ptr<Doorbell::Bell> bell;
  std::shared_ptr<nats::Inbox> inbox;
  std::unique_ptr<FollowedStream> stream;
  // Equals its entry in `deadlines`.
  Instant due = Instant::max();
  // Waits for its turn in `busy`.
  bool is_busy = false;
  // A step had no memory, mend() restarts it.
  bool is_broken = false;
};

struct FollowedFeeds::State {
  State(FollowedOptions with, const Deps& of)
      : options(std::move(with)),
        deps(of),
        budget(std::make_shared<ByteBudget>(
            options.held_bytes_max,
            ByteBudget::Within{.parent = options.memory, .limit = "events-held-bytes-max"})),
        returns_subject(of.subjects.returns(of.reader)),
        round_trip(std::min(kRoundTripEvery, options.follower.stale_after / 5), of.draw,
                   of.clock.now()) {}

  // Called by any thread.
  void push(StreamCommand command);
  std::vector<StreamCommand> take_commands();
  // The thread's own, from here on. followed_thread.cc gives the reasons.
  // The body of the thread.
  void run(const std::stop_token& stop);
  // Waits for work, then does all due work.
  void turn();
  // Carries out a command of a caller.
  void carry_out(const StreamCommand& command);
  // Runs a step for a followed stream. Marks the stream as broken if the step runs out of memory.
  void stream_step(CacheId cache, const std::function<void(Followed&)>& step);
  // Follows broken streams like new ones.
  void mend();
  // Gives a stream a place in `busy`.
  void ring(CacheId cache);
  void ring_all();
  [[nodiscard]] std::map<CacheId, FollowedStatus> all_statuses() const;
  // Begins or ends a stream.
  void follow(CacheId cache, frames::StreamName stream);
  void forget(CacheId cache);
  void unsubscribe(const Followed& followed) const;
  // Gives each stream in `busy` one turn.
  void read_some();
  bool read_turn(Followed& followed, bool& is_used);
  // Settles the streams whose deadline has come.
  void meet_deadlines();
  void leave_deadlines(CacheId cache, Followed& followed);
  // Lets a stream send its requests, and publishes its status.
  void settle(CacheId cache, Followed& followed);
  // Reads returned numbers and sends the next one.
  void measure_nats();
  // Called by any thread.
  void publish(FollowedStatus status);
  [[nodiscard]] Instant next_turn() const;
  [[nodiscard]] bool is_wanted(CacheId cache) const;

  const FollowedOptions options;
  const Deps deps;
  // Shared by the inboxes, which may live longer than this object.
  const std::shared_ptr<ByteBudget> budget;
  const std::shared_ptr<Doorbell> door = std::make_shared<Doorbell>();

  // Held for memory work only.
  mutable Mutex mutex;
  std::vector<StreamCommand> commands SL_GUARDED_BY(mutex);
  // Of all wanted caches.
  std::map<CacheId, FollowedStatus> statuses SL_GUARDED_BY(mutex);

  // When the thread's present turn began. kNoTurn: it waits.
  std::atomic<Instant> turn_began = kNoTurn;

  // For the messages that this process sends to itself.
  const std::string returns_subject;
  const std::shared_ptr<nats::Inbox> returns = std::make_shared<nats::Inbox>(
      kReturnsLimits,
      nats::Inbox::Among{.budget = nullptr, .told = [door = door] { door->wake(); }});
  RoundTrip round_trip SL_GUARDED_BY(mutex);

  // Members that only the thread uses.
  std::vector<StreamCommand> taken;
  // Carried out of `taken`.
  std::size_t carried_out = 0;
  // At least one stream is broken.
  bool has_broken = false;
  // A turn ran out of memory: its bells may be lost.
  bool has_lost_turn = false;
  std::map<CacheId, Followed> followed;
  // Readers that were ever made. Each stream gets a new name for its replies.
  std::uint64_t readers = 0;
  // The caches whose inboxes may have more messages, each once.
  std::deque<CacheId> busy;
  // Of the streams with a deadline.
  std::set<std::pair<Instant, CacheId>> deadlines;
  // As round_trip returned it.
  Instant nats_fresh_at{};
  // The index may have memory to free.
  bool may_reclaim = false;
  StreamLog lines;

  // Ends before all of the above.
  std::optional<WorkerThread> thread;
};

}  // namespace sightline::followed
