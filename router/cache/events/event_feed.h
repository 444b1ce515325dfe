// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "common/base/bytes.h"
#include "common/base/clock.h"

#include "router/cache/events/normaliser.h"
#include "router/cache/events/stream.h"
#include "router/cache/operations/facts.h"
#include "router/cache/operations/operation.h"

namespace sightline::events {

// The position of one rank's events, and what they say about its cache.
struct FeedStatus {
  // The number of the rank's cache in this process.
  CacheId cache;
  // Names the cache together with worker and rank (operations::CacheName::epoch).
  std::uint64_t epoch = 0;
  // The owner of the socket sets health and caught_up.
  operations::CacheFacts facts;
  // The time of the last batch, by the engine's clock. 0: no batch yet.
  double batch_timestamp_s = 0;
  // Time of application - time of the batch, for the last batch. Not negative.
  std::chrono::milliseconds lag{0};
  // The owner of the socket sets this.
  std::uint64_t connections_lost = 0;
  // When the last message arrived, replays included. The owner of the socket sets this.
  Instant heard_at{};
  // A replay is needed or runs, so the state may lack messages.
  bool replaying = false;
  // More live messages came than are kept. No more are read until the running replay ends.
  bool held_back = false;
  // Connections closed because a message did not end.
  std::uint64_t overruns = 0;
  // The last batch states another rank.
  bool is_other_rank = false;
  // Messages that were not applied because they state another rank.
  std::uint64_t other_rank_messages = 0;
  // Messages with broken frames or payloads.
  std::uint64_t undecodable_messages = 0;
  // Normaliser::has_uncounted_groups().
  bool hybrid_cache = false;
  // Blocks that were announced before their parent.
  std::size_t waiting_blocks = 0;
  StreamStatistics stream;
  NormaliserStatistics normaliser;
};

// Turns one rank's messages from the socket into operations: order (EventStream), decoding,
// normalisation (Normaliser).
// Thread safety: one thread at a time. Scheme and sink outlive it.
class EventFeed {
 public:
  EventFeed(NormaliserOptions normaliser, StreamOptions stream, const keys::Scheme& scheme,
            operations::OperationSink& sink);

  // Each returns the sequence number from which the caller must request a replay, if any. This
  // request voids a running replay. `now` is the wall time, for the lag.
  // Call this once, before the other methods.
  std::optional<std::uint64_t> start();
  // A live message. A message with broken frames is counted and dropped.
  std::optional<std::uint64_t> live(std::span<const ByteView> frames, WallTime now);
  // See the methods of EventStream with these names.
  std::optional<std::uint64_t> reconnected(bool in_order, WallTime now);
  std::optional<std::uint64_t> relearn(bool replay, WallTime now);
  std::optional<std::uint64_t> replayed(std::span<const ByteView> frames, WallTime now);
  std::optional<std::uint64_t> replay_timed_out(WallTime now);

  // See EventStream.
  [[nodiscard]] bool wants_live() const { return stream_.wants_live(); }
  [[nodiscard]] bool replay_progressed() const { return stream_.replay_progressed(); }
  void lost() { stream_.lost(); }

  // Forgets the engine and clears its cache.
  void forget() { state_.reset(); }

  // The time of the last batch, by the engine's clock in Unix seconds. 0: no batch yet.
  [[nodiscard]] double batch_timestamp_s() const { return batch_timestamp_s_; }
  [[nodiscard]] bool replaying() const { return stream_.replaying(); }
  // Returns the status without the fields that the owner of the socket sets.
  [[nodiscard]] FeedStatus status() const;

 private:
  // Applies a step of the stream: drop, messages, replay request.
  std::optional<std::uint64_t> carry_out(StreamStep step, WallTime now);
  // Decodes one message and gives it to the normaliser.
  void apply(const EventMessage& message, WallTime now);

  const CacheId cache_;
  const wire::EventFormat& format_;
  const std::optional<std::int64_t> rank_;
  const bool has_replay_;
  EventStream stream_;
  Normaliser state_;
  double batch_timestamp_s_ = 0;
  std::chrono::milliseconds lag_{0};
  bool is_other_rank_ = false;
  std::uint64_t other_rank_messages_ = 0;
  std::uint64_t undecodable_messages_ = 0;
};

}  // namespace sightline::events
