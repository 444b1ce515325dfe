// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/events/event_feed.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sightline::events {

namespace {

// 0 if the engine's clock is ahead of this one, or if its time stamp is not a finite number.
std::chrono::milliseconds lag_of(double batch_timestamp_s, WallTime now) {
  constexpr double kLagMax_s = 1e9;
  const auto now_s = std::chrono::duration<double>(now.time_since_epoch()).count();
  const auto lag_s = now_s - batch_timestamp_s;
  if (!std::isfinite(lag_s) || lag_s <= 0) return std::chrono::milliseconds(0);
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(lag_s, kLagMax_s) * 1000));
}

}  // namespace

EventFeed::EventFeed(NormaliserOptions normaliser, StreamOptions stream, const keys::Scheme& scheme,
                     operations::OperationSink& sink)
    : cache_(normaliser.id),
      format_(*normaliser.format),
      rank_(normaliser.rank),
      has_replay_(stream.replay_available),
      stream_(stream),
      state_(std::move(normaliser), scheme, sink) {}

std::optional<std::uint64_t> EventFeed::start() { return stream_.start().replay_from; }

std::optional<std::uint64_t> EventFeed::live(std::span<const ByteView> frames, WallTime now) {
  auto message = parse_live(frames);
  if (!message) {
    // The message has no known number. The next message shows the gap, and a replay fills it.
    ++undecodable_messages_;
    return std::nullopt;
  }
  return carry_out(stream_.live(std::move(*message)), now);
}

std::optional<std::uint64_t> EventFeed::reconnected(bool in_order, WallTime now) {
  return carry_out(stream_.reconnected(in_order), now);
}

std::optional<std::uint64_t> EventFeed::relearn(bool replay, WallTime now) {
  return carry_out(stream_.relearn(replay), now);
}

std::optional<std::uint64_t> EventFeed::replayed(std::span<const ByteView> frames, WallTime now) {
  auto answer = parse_replay(frames);
  if (!answer) {
    // The next answer shows the hole in the replay.
    ++undecodable_messages_;
    return std::nullopt;
  }
  if (!answer->has_value()) return carry_out(stream_.replay_ended(false), now);
  return carry_out(stream_.replayed(std::move(**answer)), now);
}

std::optional<std::uint64_t> EventFeed::replay_timed_out(WallTime now) {
  return carry_out(stream_.replay_ended(true), now);
}

std::optional<std::uint64_t> EventFeed::carry_out(StreamStep step, WallTime now) {
  // The drop comes first: the messages to apply belong to the time after it.
  if (step.drop) state_.reset();
  for (const auto& message : step.apply) apply(message, now);
  return step.replay_from;
}

void EventFeed::apply(const EventMessage& message, WallTime now) {
  // A publisher's first message has number 0. Its engine's cache was empty before.
  if (message.sequence == 0) state_.begin();
  const auto batch = format_.decode(message.payload);
  if (!batch) {
    ++undecodable_messages_;
    state_.reset();  // its changes are unknown
    return;
  }
  is_other_rank_ = rank_ && batch->rank && *batch->rank != *rank_;
  if (is_other_rank_) {
    ++other_rank_messages_;
    state_.reset();  // earlier messages may be another rank's too
    return;
  }
  state_.apply(*batch);
  batch_timestamp_s_ = batch->timestamp_s;
  lag_ = lag_of(batch->timestamp_s, now);
}

FeedStatus EventFeed::status() const {
  return {.cache = cache_,
          .epoch = state_.epoch(),
          .facts = {.has_replay = has_replay_,
                    .block_size = state_.block_size(),
                    .block_size_conflict = state_.block_size_conflict(),
                    .missing = state_.missing(),
                    .replay_silent = stream_.replay_silent(),
                    .upper_bound = state_.is_upper_bound(),
                    .sequence = stream_.last_sequence()},
          .batch_timestamp_s = batch_timestamp_s_,
          .lag = lag_,
          .replaying = stream_.replaying(),
          .is_other_rank = is_other_rank_,
          .other_rank_messages = other_rank_messages_,
          .undecodable_messages = undecodable_messages_,
          .hybrid_cache = state_.has_uncounted_groups(),
          .waiting_blocks = state_.waiting(),
          .stream = stream_.statistics(),
          .normaliser = state_.statistics()};
}

}  // namespace sightline::events
