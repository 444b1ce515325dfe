// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/publisher/frame_publisher.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "common/base/check.h"

#include "router/replicas/frames/stream_codec.h"

namespace sightline::publisher {

using operations::CacheFacts;
using operations::CacheName;
using operations::Clear;
using operations::Operation;
using operations::Remove;
using operations::Store;

namespace {

constexpr std::string_view kLost = "the agent lost some of its own cache operations";

DumpOptions fitted(DumpOptions options, std::size_t payload_bytes_max) {
  // A chunk is a message too, so it must fit into one.
  options.chunk_bytes = std::min(options.chunk_bytes, payload_bytes_max);
  return options;
}

// Whether routers should receive a beat soon. Counters in the facts change all the time and wait
// for the next regular beat.
bool is_news(const CacheFacts& before, const CacheFacts& after) {
  return before.health != after.health || before.reason != after.reason ||
         before.draining != after.draining || before.missing != after.missing ||
         before.upper_bound != after.upper_bound || before.block_size != after.block_size ||
         before.block_size_conflict != after.block_size_conflict ||
         before.replay_silent != after.replay_silent;
}

}  // namespace

FramePublisher::FramePublisher(frames::StreamName stream, frames::Instance agent,
                               PublisherOptions options, std::function<std::uint64_t()> draw)
    : stream_(std::move(stream)),
      agent_(std::move(agent)),
      options_(std::move(options)),
      operation_bytes_max_(options_.payload_bytes_max - frames::kFrameOverheadBytesMax),
      draw_(std::move(draw)),
      held_(options_.blocks_max),
      ring_(options_.ring_bytes_max),
      dumps_(stream_, fitted(options_.dump, options_.payload_bytes_max), draw_),
      limits_(options_.readers) {
  SL_CHECK(options_.payload_bytes_max >= kPayloadBytesMin);
}

void FramePublisher::take(const CacheName& cache, const Operation& operation) {
  follow(cache);
  // What was lost may contradict what follows, so nothing is applied until the cache begins again.
  if (is_lost_) return;
  held_.apply(operation);
  if (epoch_) append(operation);
}

void FramePublisher::tell(const CacheName& cache, const CacheFacts& facts,
                          std::optional<std::chrono::milliseconds> lag_by_stamp, Instant now) {
  now_ = now;
  follow(cache);
  is_turned_ = is_turned_ || is_news(facts_, facts);
  facts_ = facts;
  lag_by_stamp_ = lag_by_stamp;
  // The epoch begins only with a proof. Its first frame is a beat with the digest of
  // the blocks at position 0.
  if (epoch_ || !is_proved()) return;
  epoch_ = draw_();
  ++statistics_.epochs;
  ring_.reset();
  flush(true);
}

void FramePublisher::lose_continuity() {
  end_epoch(std::string(kLost));
  held_.apply(Clear{});
  is_lost_ = true;
}

void FramePublisher::limit_payload(std::size_t bytes_max) {
  SL_CHECK(bytes_max >= kPayloadBytesMin);
  if (bytes_max >= options_.payload_bytes_max) return;
  // Pending operations may be more than a new frame can hold. They are written within the old
  // limit. If the frame is too large, the lines below drop it, and readers see a gap.
  flush(false);
  options_.payload_bytes_max = bytes_max;
  operation_bytes_max_ = bytes_max - frames::kFrameOverheadBytesMax;
  std::erase_if(out_, [&](const Outgoing& one) { return one.payload.size() > bytes_max; });
  ring_.forget_to_larger_than(bytes_max);
  const bool was_making = dumps_.is_making();
  dumps_.drop_all(held_);
  dumps_.limit_chunks(bytes_max);
  if (was_making) begin_dump();
}

// The facts of the earlier cache say nothing about the new one.
void FramePublisher::follow(const CacheName& cache) {
  if (cache_epoch_ == cache.epoch) return;
  if (cache_epoch_) {
    end_epoch("the agent is loading the engine's blocks again");
    held_.apply(Clear{});
    facts_.health = operations::FeedHealth::Replaying;
    facts_.caught_up.reset();
  }
  cache_epoch_ = cache.epoch;
  is_lost_ = false;
}

// Routers must stop claiming these blocks immediately. So the last frame has a Clear and a beat
// with the reason. The Clear is applied first, because the beat's digest must be that of the empty
// cache.
void FramePublisher::end_epoch(const std::string& why) {
  if (!epoch_) return;
  held_.apply(Clear{});
  append(Clear{});
  facts_.health = operations::FeedHealth::ToldBadly;
  facts_.reason = why;
  flush(true);
  const std::uint64_t ended = *epoch_;
  epoch_.reset();
  dumps_.drop_all(held_);
  // The dump that these readers wait for will never be made.
  for (const auto& reader : dumps_.take_waiting()) refuse_other_epoch(reader, ended);
}

bool FramePublisher::is_proved() const {
  return !is_lost_ && facts_.health == operations::FeedHealth::Verified;
}

void FramePublisher::append(const Operation& operation) {
  if (std::holds_alternative<Clear>(operation)) {
    // Two consecutive Clears are malformed (see codec.cc), and the second changes nothing.
    const bool is_repeated = !pending_.empty() && std::holds_alternative<Clear>(pending_.back());
    if (!is_repeated) append_part(Clear{});
    return;
  }
  const auto* store = std::get_if<Store>(&operation);
  const auto& keys = store != nullptr ? store->keys : std::get<Remove>(operation).keys;
  // Cuts an operation that does not fit into the rest of a frame. A later part of a store begins
  // after the last key of the part before.
  for (std::size_t from = 0; from < keys.size();) {
    const std::size_t room = operation_bytes_max_ - pending_bytes_;
    if (room < frames::kOperationBytes + frames::kKeyBytes) {
      flush(false);
      continue;
    }
    const std::size_t count =
        std::min(keys.size() - from, (room - frames::kOperationBytes) / frames::kKeyBytes);
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(from);
    const std::vector<keys::BlockKey> part(first, first + static_cast<std::ptrdiff_t>(count));
    if (store == nullptr) {
      append_part(Remove{.tier = std::get<Remove>(operation).tier, .keys = part});
    } else {
      append_part(Store{
          .tier = store->tier, .parent = from == 0 ? store->parent : keys[from - 1], .keys = part});
    }
    from += count;
  }
}

void FramePublisher::append_part(Operation part) {
  const std::size_t bytes = frames::encoded_bytes(part);
  if (pending_bytes_ + bytes > operation_bytes_max_) flush(false);
  if (pending_.empty()) pending_since_ = now_;
  pending_bytes_ += bytes;
  pending_.push_back(std::move(part));
}

void FramePublisher::flush(bool with_beat) {
  if (!epoch_ || (pending_.empty() && !with_beat)) return;
  frames::Frame frame;
  frame.instance = agent_.number;
  frame.epoch = *epoch_;
  frame.seq = ring_.last() + 1;
  frame.operations = std::exchange(pending_, {});
  pending_bytes_ = 0;
  if (with_beat) {
    frame.beat = beat();
    beaten_at_ = now_;
    is_turned_ = false;
    ++statistics_.beats;
  }
  ++statistics_.frames;
  std::string payload = frames::encode({.stream = stream_, .body = std::move(frame)});
  SL_CHECK(payload.size() <= options_.payload_bytes_max);
  // Nothing waits for NATS. An unsent frame still enters the ring, so a router that sees the gap
  // can request it.
  if (frames_bytes_ + payload.size() <= options_.frames_bytes_max) {
    frames_bytes_ += payload.size();
    out_.push_back({.reader = {}, .payload = payload, .is_in_order = true});
  } else {
    ++statistics_.frames_unsent;
  }
  ring_.push(std::move(payload));
}

frames::Beat FramePublisher::beat() const {
  frames::Beat beat;
  beat.digest = held_.digest();
  beat.facts = facts_;
  beat.hearing = is_proved();
  if (!beat.hearing) beat.trouble = is_lost_ ? kLost : operations::reason_of(facts_);
  beat.capped = held_.is_capped();
  beat.draining = facts_.draining;
  beat.lag_by_stamp = lag_by_stamp_;
  return beat;
}

Instant FramePublisher::beat_at() const {
  return beaten_at_ + (is_turned_ ? options_.turn_beat_after : options_.beat_every);
}

std::vector<Outgoing> FramePublisher::take_ready(Instant now) {
  now_ = now;
  // Beats come first: their frames include the pending operations.
  if (epoch_ && now >= beat_at()) flush(true);
  if (!pending_.empty() && now - pending_since_ >= options_.flush_after) flush(false);
  // Looks may have become due by the facts that arrived since the last call.
  answer_looks(now);
  dumps_.expire(now);
  return take_out();
}

std::vector<Outgoing> FramePublisher::take_out() {
  replies_bytes_ = frames_bytes_ = 0;
  return std::exchange(out_, {});
}

std::optional<Instant> FramePublisher::deadline() const {
  std::optional<Instant> first = dumps_.deadline();
  const auto add = [&first](Instant at) { first = first ? std::min(*first, at) : at; };
  if (!out_.empty()) add(now_);
  if (epoch_) add(beat_at());
  if (!pending_.empty()) add(pending_since_ + options_.flush_after);
  for (const Look& look : looks_) add(look.asked_at + options_.look_for);
  return first;
}

std::vector<Outgoing> FramePublisher::bye() {
  flush(false);
  out_.push_back({.reader = {},
                  .payload = frames::encode(
                      {.stream = stream_, .body = frames::Bye{.instance = agent_.number}}),
                  .is_in_order = true});
  return take_out();
}

std::size_t FramePublisher::memory_bytes() const {
  return held_.memory_bytes() + ring_.bytes() + dumps_.bytes() + pending_bytes_ + frames_bytes_ +
         replies_bytes_;
}

}  // namespace sightline::publisher
