// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/events/stream.h"

#include <algorithm>
#include <utility>

#include "router/cache/keys/block_key.h"

namespace sightline::events {

namespace {

constexpr std::uint64_t kEndSequence = ~std::uint64_t{0};  // -1 as a signed number of 64 bits
constexpr std::size_t kSequenceBytes = 8;
// How many digests of the last applied messages are kept. This limits the overlap of replay and
// live messages that the stream recognises. An older message counts as a restart, which is safe.
constexpr std::size_t kRecentMax = 16'384;
// After so many replays in a row that bring nothing new, the stream takes the live messages as they
// come. The same limit holds for replays from 0 without a live message applied between. Otherwise a
// replay socket of another engine would get requests without end.
constexpr std::uint32_t kAskAgainMax = 4;
// The limit for a replay socket that has never answered. Each request costs the timeout of a silent
// replay.
constexpr std::uint32_t kAskSilentMax = 1;
// The remaining room of all streams together below which it is scarce.
constexpr std::size_t kScarceBytes = 1U << 20U;

Error corrupt(std::string message) {
  return worker_error(ErrorCode::Corrupt, std::move(message), false);
}

Bytes copy_of(ByteView bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

Result<EventMessage> parse_live(std::span<const ByteView> frames) {
  if (frames.size() != 3) {
    return corrupt("KV event message of " + std::to_string(frames.size()) + " frames, need 3");
  }
  if (frames[1].size() != kSequenceBytes) return corrupt("KV event sequence is not 8 bytes");
  const auto sequence = load_be64(frames[1].data());
  if (sequence == kEndSequence) return corrupt("KV event sequence is the replay's end marker");
  return EventMessage{.sequence = sequence, .payload = copy_of(frames[2])};
}

Result<std::optional<EventMessage>> parse_replay(std::span<const ByteView> frames) {
  const bool framed = (frames.size() == 3 || frames.size() == 4) && frames[0].empty();
  if (!framed && frames.size() != 2) {
    return corrupt("KV event replay of " + std::to_string(frames.size()) +
                   " frames, need 2, or 3 or 4 of which the first is empty");
  }
  const auto sequence_bytes = frames[frames.size() - 2];
  if (sequence_bytes.size() != kSequenceBytes) {
    return corrupt("KV event replay sequence is not 8 bytes");
  }
  const auto sequence = load_be64(sequence_bytes.data());
  if (sequence == kEndSequence) return std::optional<EventMessage>();
  return std::optional(EventMessage{.sequence = sequence, .payload = copy_of(frames.back())});
}

std::array<std::uint8_t, 8> replay_start(std::uint64_t sequence) {
  std::array<std::uint8_t, 8> bytes{};
  store_be64(bytes.data(), sequence);
  return bytes;
}

bool is_scarce(const ByteBudget& held) { return held.room() < kScarceBytes; }

EventStream::EventStream(StreamOptions options) : options_(options), held_(options.held) {}

StreamStep EventStream::start() {
  StreamStep step;
  if (options_.replay_available) ask(Mode::Joining, step);
  return step;
}

StreamStep EventStream::live(EventMessage message) {
  StreamStep step;
  if (mode_ == Mode::Live) {
    take_live(std::move(message), step);
  } else {
    keep(std::move(message), false);
  }
  return step;
}

bool EventStream::wants_live() const {
  if (mode_ == Mode::Live) return true;
  if (options_.held != nullptr && is_scarce(*options_.held)) return false;
  return buffered_.size() < options_.buffered_messages_max &&
         held_.bytes() < options_.buffered_bytes_max;
}

StreamStep EventStream::reconnected(bool in_order) {
  StreamStep step;
  clear_buffered();  // of the lost connection: if they are of this process, the replay has them
  gap_open_ = false;
  silent_ = false;
  empty_replays_ = beginnings_ = 0;
  if (last_ && !(in_order && options_.replay_available)) forget(step);
  if (options_.replay_available) ask(last_ ? Mode::Filling : Mode::Joining, step);
  return step;
}

StreamStep EventStream::relearn(bool replay) {
  StreamStep step;
  ++statistics_.relearns;
  empty_replays_ = beginnings_ = 0;
  forget(step);
  if (replay && options_.replay_available) {
    ask(Mode::Joining, step);
    return step;
  }
  mode_ = Mode::Live;
  gap_open_ = false;
  exhausted_ = true;  // the next message is not the first one, which must not cause a replay
  drain(step);
  recover_dropped(step);
  return step;
}

StreamStep EventStream::replayed(EventMessage message) {
  StreamStep step;
  if (mode_ == Mode::Live) return step;
  answered_ = true;
  silent_ = false;
  if (mode_ == Mode::Filling && !verified_ && !verify(message, step)) return step;
  if (last_ && message.sequence <= *last_) return step;
  if (last_ && message.sequence > *last_ + 1) {
    if (continues_live()) {
      finish(true, false, step);
      return step;
    }
    if (empty_replays_ < asks_max()) {
      ask_on(step);
      return step;
    }
    forget(step);  // the replays before this one had the same hole
  }
  if (!last_ && message.sequence > 0) ++statistics_.late_joins;
  progressed_ = true;
  empty_replays_ = 0;
  accept(std::move(message), step);
  if (meets_live()) finish(true, false, step);
  return step;
}

// Compares the first answer of a replay that began at the last applied message. False: the answer
// is used up.
bool EventStream::verify(const EventMessage& message, StreamStep& step) {
  if (message.sequence == last_ && seen(message)) {
    verified_ = true;
    return false;
  }
  // Another life of the publisher, or the message has left its buffer.
  const bool is_beginning = message.sequence > *last_;
  forget(step);
  mode_ = Mode::Joining;
  if (!is_beginning) ask(Mode::Joining, step);
  return is_beginning;
}

StreamStep EventStream::replay_ended(bool timed_out) {
  StreamStep step;
  if (mode_ == Mode::Live) return step;
  if (!timed_out) silent_ = false;
  if (timed_out && !progressed_) ++statistics_.replay_timeouts;
  const bool closed = continues_live();
  if (!closed && progressed_) {
    // Perhaps only a part of the answers found room, or the replay was received before the rest was
    // sent.
    timed_out ? ask_on(step) : ask(Mode::Filling, step);
    return step;
  }
  if (!closed && timed_out && empty_replays_ < asks_max()) {
    ask(last_ ? Mode::Filling : Mode::Joining, step);
    return step;
  }
  if (mode_ == Mode::Filling && !verified_) {
    // Either no answer came, or the publisher does not know the last message. Then it is a new
    // life, shorter than the old one. In both cases nothing proves the state.
    forget(step);
    if (!timed_out) {
      ask(Mode::Joining, step);
      return step;
    }
  }
  // The replay was cut short, and no live message shows that nothing is missing after its answers.
  if (timed_out && last_ && !closed) forget(step);
  silent_ = timed_out && !answered_;
  finish(closed, timed_out || !progressed_, step);
  return step;
}

// The kept live messages begin directly after the last applied message, or earlier.
bool EventStream::continues_live() const {
  return !buffered_.empty() && buffered_.front().sequence <= (last_ ? *last_ + 1 : 0);
}

// The replay has reached the kept live messages, which continue from there. Nothing is missing
// between.
bool EventStream::meets_live() {
  bool met = false;
  while (!buffered_.empty() && buffered_.front().sequence <= *last_ && seen(buffered_.front())) {
    pop_buffered();
    ++statistics_.duplicates;
    met = true;
  }
  return met;
}

// closed: no message is missing before the live messages. exhausted: another replay would bring no
// more.
void EventStream::finish(bool closed, bool exhausted, StreamStep& step) {
  if (gap_open_ && closed) ++statistics_.gaps_recovered;
  gap_open_ = false;
  mode_ = Mode::Live;
  exhausted_ = exhausted;
  drain(step);
  recover_dropped(step);
  exhausted_ = false;
}

// A message that found no room is missing. The stream requests it here, without waiting for the
// next live message to show the gap. Without state nothing can be wrong.
void EventStream::recover_dropped(StreamStep& step) {
  if (mode_ != Mode::Live || !std::exchange(dropped_, false) || !last_) return;
  if (empty_replays_ < asks_max()) {
    ask(Mode::Filling, step);
  } else {
    forget(step);
  }
}

void EventStream::drain(StreamStep& step) {
  while (mode_ == Mode::Live && !buffered_.empty()) {
    auto message = pop_buffered();
    const bool is_stale = !recent_.empty() && message.sequence < recent_.front().sequence;
    if (is_stale) {  // older than all that the replay still had
      ++statistics_.duplicates;
      continue;
    }
    take_live(std::move(message), step);
  }
}

void EventStream::take_live(EventMessage message, StreamStep& step) {
  if (last_ && message.sequence <= *last_) {
    if (seen(message)) {
      ++statistics_.duplicates;
      return;
    }
    ++statistics_.restarts;
    forget(step);
    exhausted_ = false;
  }
  const bool first = !last_.has_value();
  const bool next = first ? message.sequence == 0 : message.sequence == *last_ + 1;
  if (!next) {
    if (can_ask()) {
      if (!first) ++statistics_.gaps;
      gap_open_ = !first;
      ask(first ? Mode::Joining : Mode::Filling, step);
      keep(std::move(message), true);
      return;
    }
    if (!first) {
      if (!options_.replay_available) ++statistics_.gaps;
      forget(step);
    }
    ++statistics_.late_joins;
  }
  exhausted_ = false;
  empty_replays_ = beginnings_ = 0;
  accept(std::move(message), step);
}

void EventStream::accept(EventMessage message, StreamStep& step) {
  last_ = message.sequence;
  recent_.push_back({.sequence = message.sequence,
                     .digest = keys::identifier_hash(text_of(message.payload)).low});
  if (recent_.size() > kRecentMax) recent_.pop_front();
  ++statistics_.applied;
  step.apply.push_back(std::move(message));
}

void EventStream::ask(Mode mode, StreamStep& step) {
  mode_ = mode;
  verified_ = false;
  answered_ = false;
  progressed_ = false;
  dropped_ = false;
  ++empty_replays_;
  if (mode == Mode::Joining) ++beginnings_;
  step.replay_from = mode == Mode::Joining ? 0 : *last_;
  ++statistics_.replays;
}

// The running replay has brought its unbroken part. Requests the rest.
void EventStream::ask_on(StreamStep& step) {
  ++statistics_.replays_cut;
  ask(Mode::Filling, step);
}

// Keeps a message for the end of the replay, before the other kept ones or after them. One message
// always has room, within the limit of all streams.
void EventStream::keep(EventMessage message, bool first) {
  const auto bytes = message.payload.size();
  const bool has_room = buffered_.empty() || first ||
                        (buffered_.size() < options_.buffered_messages_max &&
                         held_.bytes() < options_.buffered_bytes_max);
  if (!has_room || !held_.add(bytes)) {
    ++statistics_.buffer_overflows;
    dropped_ = true;
    return;
  }
  buffered_.insert(first ? buffered_.begin() : buffered_.end(), std::move(message));
}

EventMessage EventStream::pop_buffered() {
  auto message = std::move(buffered_.front());
  buffered_.pop_front();
  held_.remove(message.payload.size());
  return message;
}

void EventStream::clear_buffered() {
  buffered_.clear();
  held_.clear();
}

void EventStream::forget(StreamStep& step) {
  step.drop = true;
  step.apply.clear();  // the drop comes first, and these messages belong before it
  last_.reset();
  recent_.clear();
  gap_open_ = false;  // no replay can fill the gap after this
  ++statistics_.drops;
}

bool EventStream::can_ask() const {
  return options_.replay_available && !exhausted_ && empty_replays_ < asks_max() &&
         beginnings_ < kAskAgainMax;
}

std::uint32_t EventStream::asks_max() const { return silent_ ? kAskSilentMax : kAskAgainMax; }

bool EventStream::seen(const EventMessage& message) const {
  // recent_ has consecutive numbers that end with last_.
  if (recent_.empty() || message.sequence < recent_.front().sequence) return false;
  const auto place = message.sequence - recent_.front().sequence;
  if (place >= recent_.size()) return false;
  return recent_[static_cast<std::size_t>(place)].digest ==
         keys::identifier_hash(text_of(message.payload)).low;
}

}  // namespace sightline::events
