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

// How far one rank's events have come, and what they tell of its cache.
struct FeedStatus {
  CacheId cache;
  std::uint64_t epoch = 0;             // operations::CacheName::epoch, of which the rest is told
  operations::CacheFacts facts;        // health and caught_up: set by who owns the socket
  double batch_timestamp_s = 0;        // engine's clock, of the last batch; 0: none yet
  std::chrono::milliseconds lag{0};    // applied - batch time, of the last batch; >= 0
  std::uint64_t connections_lost = 0;  // set by who owns the socket
  Instant heard_at{};                  // likewise; the last message, replays included
  bool replaying = false;
  // More than is kept came live: no more is read until the replay that runs ends.
  bool held_back = false;
  std::uint64_t overruns = 0;              // connections closed: messages without end
  bool is_other_rank = false;              // so says the last batch
  std::uint64_t other_rank_messages = 0;   // not applied
  std::uint64_t undecodable_messages = 0;  // broken frames or payloads
  bool hybrid_cache = false;               // see Normaliser::has_uncounted_groups()
  std::size_t waiting_blocks = 0;          // announced before their parent
  StreamStatistics stream;
  NormaliserStatistics normaliser;
};

// All that happens to one rank's messages between its socket and the operations they mean: order,
// decoding, normalisation. Thread safety: none. Scheme and sink outlive it.
class EventFeed {
 public:
  EventFeed(NormaliserOptions normaliser, StreamOptions stream, const keys::Scheme& scheme,
            operations::OperationSink& sink);

  // Each returns the sequence from which a replay must be asked now, if any; asking voids one
  // that runs. now: wall time, for the lag.
  std::optional<std::uint64_t> start();
  std::optional<std::uint64_t> live(std::span<const ByteView> frames, WallTime now);
  // See EventStream.
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

  [[nodiscard]] double batch_timestamp_s() const { return batch_timestamp_s_; }
  [[nodiscard]] bool replaying() const { return stream_.replaying(); }
  [[nodiscard]] FeedStatus status() const;

 private:
  std::optional<std::uint64_t> carry_out(StreamStep step, WallTime now);
  void apply(const Message& message, WallTime now);

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
