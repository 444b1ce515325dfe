// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/hosts/lookup.h"

#include "router/cache/events/event_feed.h"
#include "router/cache/keys/block_key.h"
#include "router/cache/operations/operation.h"
#include "router/cache/subscriber/follower.h"

namespace sightline::subscriber {

struct SubscriberOptions {
  FollowOptions follow = {};
  events::StreamOptions stream = {};
  // Events received and not applied, of all ranks together; beyond it they are not read.
  std::size_t held_bytes_max = 512U << 20U;
  // For the blocks whose engine hashes are remembered, of all ranks together: those of as many
  // blocks as the index takes.
  std::size_t handle_bytes_max = 16'000'000 * events::kHandleBytes;
  // What the two are charged to besides; both outlive the subscriber. Null: to nothing.
  ByteBudget* held_memory = nullptr;
  ByteBudget* handle_memory = nullptr;
  // Told when a rank's health or the block size of its events has changed, on the subscriber's
  // thread and before it reads on: must be quick.
  std::function<void(const events::FeedStatus&)> on_change = nullptr;
  // Told, likewise, after anything was done to a rank, after the operations that it caused: about
  // once for each time that messages of it are read.
  std::function<void(const events::FeedStatus&)> on_status = nullptr;
  // Told, likewise, of a rank that cannot be followed; it is unknown by then.
  // Errors: InvalidArgument, which says which endpoint is refused or cannot be bound and why;
  // Internal, when the process has no sockets left.
  std::function<void(CacheId, const Error&)> on_refused = nullptr;
  hosts::Lookup* names = nullptr;  // of ranks' hosts; outlives the subscriber. Null: its own
};

// Makes what takes the operations of a cache that is to be followed. On the subscriber's thread, as
// are all calls of what it makes.
using SinkMaker = std::function<std::unique_ptr<operations::OperationSink>(CacheId)>;

// Reads the KV events of many ranks: ZMQ SUB per rank, and a DEALER while a replay runs. One
// thread of its own does all of it.
//
// Thread safety: all methods from any thread. Scheme and clock outlive it.
class EventSubscriber {
  struct State;

 public:
  // Errors: Internal, when the process has no file descriptors or threads left.
  static Result<std::unique_ptr<EventSubscriber>> create(const SubscriberOptions& options,
                                                         const keys::Scheme& scheme,
                                                         SinkMaker make_sink, const Clock& clock);
  explicit EventSubscriber(std::unique_ptr<State> state);  // by create()
  ~EventSubscriber();
  EventSubscriber(const EventSubscriber&) = delete;
  EventSubscriber& operator=(const EventSubscriber&) = delete;

  // Starts to follow a rank; it need not be up yet, nor must an address to bind be free.
  // rank.id must not be followed already. Returns at once, however busy the subscriber's
  // thread is; that opens the sockets, and tells on_refused where it cannot.
  void add(const FeedEndpoints& endpoints, events::NormaliserOptions cache);
  // Stops following it and clears its cache, soon after the return. Unknown: nothing.
  void remove(CacheId cache);

  // What is known of the rank has proved wrong: forgets it, soon after the return, and learns it
  // anew, from a replay or from the next message on. Unknown: nothing.
  void relearn(CacheId cache, bool replay);

  // Has a rank's events looked at, soon after the return, so that its status tells whether all
  // of them are applied; see Follower::look(). Unknown: nothing.
  void look(CacheId cache);

  // State of one rank after its last message; nothing when it is not followed.
  [[nodiscard]] std::optional<events::FeedStatus> status(CacheId cache) const;
  // Of all ranks, in the order of their ids.
  [[nodiscard]] std::vector<events::FeedStatus> statuses() const;
  // How long the thread has been busy since it last waited for messages; zero while it waits.
  [[nodiscard]] Duration turn_age() const;
  // Of all ranks: bytes received and not applied, and how often these came near their maximum.
  [[nodiscard]] std::size_t held_bytes() const;
  [[nodiscard]] std::uint64_t held_hits() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::subscriber
