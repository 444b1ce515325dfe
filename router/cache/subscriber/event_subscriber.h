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
#include "router/cache/subscriber/rank_connection.h"

namespace sightline::subscriber {

// Settings of the subscriber.
struct SubscriberOptions {
  FollowOptions follow = {};
  events::StreamOptions stream = {};
  // The maximum of received events that are not applied, for all ranks together. Beyond it, sockets
  // are not read. Setting: events.held_bytes_max.
  std::size_t held_bytes_max = 512U << 20U;
  // Memory for the blocks whose engine hashes are remembered, for all ranks together. The default
  // is for as many blocks as the index takes.
  std::size_t handle_bytes_max = 16'000'000 * events::kHandleBytes;
  // Budgets that the two limits are also charged to. Both outlive the subscriber. Null: no further
  // budget.
  ByteBudget* held_memory = nullptr;
  ByteBudget* handle_memory = nullptr;
  // Called when a rank's health or the block size of its events has changed. It runs on the
  // subscriber's thread before more is read, so it must be quick.
  std::function<void(const events::FeedStatus&)> on_change = nullptr;
  // Called in the same way after each step of a rank, after the operations that the step caused. It
  // runs about once for each time that the rank's messages are read.
  std::function<void(const events::FeedStatus&)> on_status = nullptr;
  // Called in the same way for a rank that cannot be followed. The subscriber has forgotten it by
  // then. Errors: InvalidArgument, which says which endpoint is refused or cannot be bound and why.
  // Internal, if the process has no sockets left.
  std::function<void(CacheId, const Error&)> on_refused = nullptr;
  // Looks up the host names of ranks. It outlives the subscriber. Null: the subscriber makes its
  // own.
  hosts::Lookup* names = nullptr;
};

// Makes the sink for the operations of a cache that will be followed. It runs on the subscriber's
// thread, as do all calls of the sink.
using SinkMaker = std::function<std::unique_ptr<operations::OperationSink>(CacheId)>;

// Reads the KV events of many ranks: a ZMQ SUB socket for each rank, and a DEALER while a replay
// runs. One thread of its own does all work.
//
// Thread safety: any thread may call any method. Scheme and clock outlive it.
class EventSubscriber {
  struct State;

 public:
  // Error: Internal, if the process has no file descriptors or threads left.
  static Result<std::unique_ptr<EventSubscriber>> create(const SubscriberOptions& options,
                                                         const keys::Scheme& scheme,
                                                         SinkMaker make_sink, const Clock& clock);
  explicit EventSubscriber(std::unique_ptr<State> state);  // by create()
  ~EventSubscriber();
  EventSubscriber(const EventSubscriber&) = delete;
  EventSubscriber& operator=(const EventSubscriber&) = delete;

  // Starts to follow a rank. The rank need not be up yet, and an address to bind need not be free.
  // rank.id must not be followed already. Returns immediately, however busy the subscriber's thread
  // is. That thread opens the sockets, and calls on_refused if it cannot.
  void add(const FeedEndpoints& endpoints, events::NormaliserOptions cache);
  // Stops to follow a rank and clears its cache, soon after the return. Ignores an unknown rank.
  void remove(CacheId cache);

  // The blocks of a rank proved wrong. Forgets them, soon after the return, and loads them again
  // from a replay or from the next message on. Ignores an unknown rank.
  void relearn(CacheId cache, bool replay);

  // Reads a rank's events soon after the return, so its status shows whether all of them are
  // applied. See RankConnection::look(). Ignores an unknown rank.
  void look(CacheId cache);

  // Returns the state of a rank after its last message. Empty if it is not followed.
  [[nodiscard]] std::optional<events::FeedStatus> status(CacheId cache) const;
  // Returns the states of all ranks, in the order of their ids.
  [[nodiscard]] std::vector<events::FeedStatus> statuses() const;
  // Returns how long the thread has been busy since it last waited for messages. Zero while it
  // waits.
  [[nodiscard]] Duration turn_age() const;
  // Return, for all ranks: the bytes received and not applied, and how often these came near their
  // maximum.
  [[nodiscard]] std::size_t held_bytes() const;
  [[nodiscard]] std::uint64_t held_hits() const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::subscriber
