// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/bytes.h"
#include "common/base/result.h"

// The order of one publisher's messages: what to apply, which are missing, when to begin again.
//
//   start() with replay ------> Joining: replay from 0. Its first answer is the beginning.
//                                |   ^   Live messages are kept.
//          the replay ends, or   |   |   the first message is not number 0, relearn(true) *
//      reaches the live messages v   |
//   start() without replay ---> Live: each message with the next number is applied
//                                |   ^
//    a number is missing, kept   |   |   the replay ends, or reaches the live messages,
//     messages had no room,      |   |   replays bring nothing new *
//             reconnected()      v   |
//                               Filling: replay from the last applied message.
//                                |       Live messages are kept.
//                                v
//                               Joining *: that message did not come again unchanged
//
// * The engine's state is forgotten first. Without a replay socket, a missing number, reconnected()
// and relearn() do only this, and Live continues with the next message. If a replay is cut short,
// another one is requested from where it ended (Filling).
namespace sightline::events {

// One message of a publisher: its number and its payload. A publisher's first message has number 0.
struct EventMessage {
  std::uint64_t sequence = 0;
  Bytes payload;
};

// Parses a live message: exactly [topic, 8-byte big-endian sequence, payload] (vLLM 0.9 to 0.32).
// Error: Corrupt.
Result<EventMessage> parse_live(std::span<const ByteView> frames);

// Parses one answer of a replay socket, as a DEALER socket receives it. The number of frames shows
// its form: ["", sequence, payload] up to vLLM 0.24, ["", topic, sequence, payload] from 0.25 on,
// [sequence, payload] in older SGLang. Empty for the end marker, whose sequence is 2^64 - 1. Error:
// Corrupt.
Result<std::optional<EventMessage>> parse_replay(std::span<const ByteView> frames);

// Returns the request to a replay socket. A DEALER sends an empty frame, then these 8 bytes.
std::array<std::uint8_t, 8> replay_start(std::uint64_t sequence);

// Settings of one stream.
struct StreamOptions {
  bool replay_available = false;
  // How many live messages are kept while a replay runs. Beyond either limit the stream wants no
  // more. One message is kept regardless of its size.
  std::size_t buffered_messages_max = 256;
  std::size_t buffered_bytes_max = 4U << 20U;
  // Limit for the kept messages of all streams together. It outlives them. Null: no limit.
  ByteBudget* held = nullptr;
};

// Counts since the stream was made.
struct StreamStatistics {
  std::uint64_t applied = 0;
  // Messages that came both live and in a replay.
  std::uint64_t duplicates = 0;
  std::uint64_t gaps = 0;             // holes in the live sequence.
  std::uint64_t gaps_recovered = 0;   // of these, filled by a replay.
  std::uint64_t restarts = 0;         // the publisher restarted.
  std::uint64_t drops = 0;            // times the state was forgotten.
  std::uint64_t late_joins = 0;       // times the first applied message was not number 0.
  std::uint64_t replays = 0;          // requested replays.
  std::uint64_t replays_cut = 0;      // of these, with a hole or without the end in their answers.
  std::uint64_t replay_timeouts = 0;  // of these, without the end and without anything new.
  std::uint64_t buffer_overflows = 0;
  std::uint64_t relearns = 0;  // requests to learn the state again.
};

// What one input requires, in this order.
struct StreamStep {
  bool drop = false;                         // forget the engine's state.
  std::vector<EventMessage> apply;           // then apply these.
  std::optional<std::uint64_t> replay_from;  // then request a replay, which voids a running one.
};

// Returns whether almost no room is left. Streams then accept nothing that they would have to keep.
bool is_scarce(const ByteBudget& held);

// The sequence logic of one publisher.
//
// It begins with a request for a replay from 0, and keeps live messages meanwhile. A gap requests a
// replay from the last applied message. That message must come again with the same bytes. Otherwise
// a publisher that restarted and counted past the last number would pass for the old one. The
// stream compares payloads by digest.
//
// vLLM drops answers that find no room on its socket. It drops them in the middle or at the end,
// and may drop the end marker. So a replay proves only its unbroken beginning. The stream keeps
// that part and requests the rest, until the answers reach the live messages or bring nothing new.
// If messages are still missing, the state is forgotten, and the stream continues with the next
// ones.
//
// Numbers alone cannot show every restart: the lost messages may be exactly as many as were applied
// before it. So the caller must report each reconnect.
// Thread safety: one thread at a time. Pure, without a clock: the caller ends a silent replay with
// replay_ended(true).
class EventStream {
 public:
  explicit EventStream(StreamOptions options);

  // Call once, before all other methods.
  StreamStep start();
  // Applies or keeps a live message. The stream may drop one that it does not want, and requests it
  // again later.
  StreamStep live(EventMessage message);
  [[nodiscard]] bool wants_live() const;
  // The publisher was lost. Live messages kept for the end of a replay are from before the loss.
  void lost() { clear_buffered(); }
  // The publisher is back after a loss, perhaps as another process. A replay proves which one it
  // is, and brings the messages lost meanwhile. Without a replay nothing proves the state, so it is
  // forgotten. in_order: no message was taken between the loss and this call. If false, messages of
  // two processes may be mixed, so the state is forgotten too.
  StreamStep reconnected(bool in_order);
  // The state is wrong: forgets it. With `replay` the stream loads it from all that the publisher
  // still has, else from the next message on.
  StreamStep relearn(bool replay);
  // An answer of the last requested replay. Ignored if no replay runs.
  StreamStep replayed(EventMessage message);
  // The last requested replay ended, or fell silent before its end.
  StreamStep replay_ended(bool timed_out);

  [[nodiscard]] bool replaying() const { return mode_ != Mode::Live; }
  // The last requested replay brought something new.
  [[nodiscard]] bool replay_progressed() const { return progressed_; }
  // The replay socket gave no answer to several requests. The stream continues without it.
  [[nodiscard]] bool replay_silent() const { return silent_; }
  // The number of the last applied message.
  [[nodiscard]] std::optional<std::uint64_t> last_sequence() const { return last_; }
  [[nodiscard]] const StreamStatistics& statistics() const { return statistics_; }

 private:
  enum class Mode : std::uint8_t {
    Live,     // no replay runs.
    Joining,  // replay from 0: its first answer is the beginning.
    Filling,  // replay from last_: must begin with that message.
  };
  struct Applied {
    std::uint64_t sequence = 0;
    std::uint64_t digest = 0;
  };

  bool verify(const EventMessage& message, StreamStep& step);
  void accept(EventMessage message, StreamStep& step);
  bool meets_live();
  void finish(bool closed, bool exhausted, StreamStep& step);
  [[nodiscard]] bool continues_live() const;
  void take_live(EventMessage message, StreamStep& step);
  void drain(StreamStep& step);
  void recover_dropped(StreamStep& step);
  void ask(Mode mode, StreamStep& step);
  void ask_on(StreamStep& step);
  void keep(EventMessage message, bool first);
  EventMessage pop_buffered();
  void clear_buffered();
  void forget(StreamStep& step);
  [[nodiscard]] bool can_ask() const;
  [[nodiscard]] std::uint32_t asks_max() const;
  [[nodiscard]] bool seen(const EventMessage& message) const;

  const StreamOptions options_;
  Mode mode_ = Mode::Live;
  bool gap_open_ = false;            // Filling because messages are missing.
  bool verified_ = false;            // Filling: the message at last_ came again unchanged.
  bool answered_ = false;            // the replay has given an answer.
  bool progressed_ = false;          // the replay has brought something new.
  bool silent_ = false;              // value of replay_silent().
  std::uint32_t empty_replays_ = 0;  // replays in a row that have brought nothing new (yet).
  std::uint32_t beginnings_ = 0;     // replays from 0 since a live message was applied.
  bool exhausted_ = false;           // a replay has ended, and another one would bring no more.
  std::optional<std::uint64_t> last_;
  std::deque<Applied> recent_;
  std::deque<EventMessage> buffered_;
  HeldBytes held_;        // memory of buffered_.
  bool dropped_ = false;  // a live message found no room since the last request.
  StreamStatistics statistics_;
};

}  // namespace sightline::events
