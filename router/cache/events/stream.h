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

// The order of one publisher's messages: what to apply, what is missing, when to start anew.
//
//   start() with replay ------> Joining: replay from 0; whatever comes is the beginning;
//                                |   ^   live messages are kept
//          the replay ends, or   |   |   the first message is not number 0; relearn(true) *
//      reaches the live messages v   |
//   start() without replay ---> Live: each message that is next is applied
//                                |   ^
//    a number is missing; kept   |   |   the replay ends, or reaches the live messages;
//     messages had no room;      |   |   replays bring nothing new *
//             reconnected()      v   |
//                               Filling: replay from the last message applied;
//                                |       live messages are kept
//                                v
//                               Joining *: that message did not come again unchanged
//
// * What is held is forgotten first. Without replay this is all that a missing number,
// reconnected() and relearn() do: Live goes on with the next message. A replay that is cut short is
// asked for once more from where it came to: Filling again.
namespace sightline::events {

// One message of a publisher: its number in the publisher's life, from 0 on, and its payload.
struct Message {
  std::uint64_t sequence = 0;
  Bytes payload;
};

// A live message: exactly [topic, 8-byte big-endian sequence, payload] (vLLM 0.9 to 0.32).
Result<Message> parse_live(std::span<const ByteView> frames);

// One answer of a replay socket as a DEALER sees it, told by its number of frames:
// ["", sequence, payload] up to vLLM 0.24, ["", topic, sequence, payload] from 0.25 on,
// [sequence, payload] of older SGLang. Nothing: the end marker, whose sequence is 2^64 - 1.
Result<std::optional<Message>> parse_replay(std::span<const ByteView> frames);

// Request to a replay socket, as a DEALER sends it: an empty frame, then these 8 bytes.
std::array<std::uint8_t, 8> replay_start(std::uint64_t sequence);

struct StreamOptions {
  bool replay_available = false;
  // Live messages kept while a replay runs; beyond either the stream wants no more of them. One
  // message is kept whatever its size.
  std::size_t buffered_messages_max = 256;
  std::size_t buffered_bytes_max = 4U << 20U;
  ByteBudget* held = nullptr;  // of these, of all streams together; outlives them; none: no bound
};

struct StreamStatistics {
  std::uint64_t applied = 0;
  std::uint64_t duplicates = 0;       // seen both live and replayed
  std::uint64_t gaps = 0;             // holes in the live sequence
  std::uint64_t gaps_recovered = 0;   // of these, filled by replay
  std::uint64_t restarts = 0;         // the publisher began a new life
  std::uint64_t drops = 0;            // times the state had to be forgotten
  std::uint64_t late_joins = 0;       // the first message applied was not number 0
  std::uint64_t replays = 0;          // replays asked for
  std::uint64_t replays_cut = 0;      // of these, whose answers had a hole or lacked their end
  std::uint64_t replay_timeouts = 0;  // of these, that brought nothing and had no end
  std::uint64_t buffer_overflows = 0;
  std::uint64_t relearns = 0;  // times somebody asked to learn the state anew
};

// What one input makes due, in this order.
struct StreamStep {
  bool drop = false;                         // forget the engine's state
  std::vector<Message> apply;                // then apply these
  std::optional<std::uint64_t> replay_from;  // then ask for a replay (a running one is void)
};

// Almost no room is left: nothing is taken that would have to be kept.
bool is_scarce(const ByteBudget& held);

// Sequence logic of one publisher.
//
// It starts by asking for a replay from 0 and keeps live messages meanwhile. A gap asks for a
// replay from the last message applied, whose bytes must come again: a publisher that restarted
// and counted past our number would otherwise pass for the old one. Payloads are compared by
// digest.
// vLLM drops answers that find no room on its socket, from the middle as from the end, the end
// marker too. So a replay vouches for its unbroken beginning only. That is kept, and the rest asked
// for from there on, until the answers reach the live messages or bring nothing new. What replays
// without anything new leave missing drops the state, and the messages go on from there.
// Numbers alone cannot show a restart whose lost messages are exactly as many as were applied
// before it: tell the stream of every reconnect.
// Thread safety: none. Pure: no clock; the caller ends a silent replay with replay_ended(true).
class EventStream {
 public:
  explicit EventStream(StreamOptions options);

  // Call once, first.
  StreamStep start();
  // What is told while the stream does not want it may be dropped, and asked for again.
  StreamStep live(Message message);
  [[nodiscard]] bool wants_live() const;
  // The publisher was lost: live messages kept for the end of a replay are its former life's.
  void lost() { clear_buffered(); }
  // The publisher was lost and is here again, perhaps as another process: has it say so by a
  // replay, with which messages lost meanwhile come. Without replay nothing can vouch for what is
  // held, so it is dropped. in_order: no message was taken after the loss and before this; else
  // those of two processes may be mixed, and what is held is dropped too.
  StreamStep reconnected(bool in_order);
  // What is held is wrong: drops it. With a replay it is learned from all that the publisher still
  // has, else from the next message on.
  StreamStep relearn(bool replay);
  // An answer of the replay asked for last. Ignored while none runs.
  StreamStep replayed(Message message);
  // The replay asked for last came to its end, or fell silent without one.
  StreamStep replay_ended(bool timed_out);

  [[nodiscard]] bool replaying() const { return mode_ != Mode::Live; }
  // The replay asked for last has brought something new.
  [[nodiscard]] bool replay_progressed() const { return progressed_; }
  // The replay socket was asked again and again and answered nothing: the stream goes on without.
  [[nodiscard]] bool replay_silent() const { return silent_; }
  // Number of the last message applied.
  [[nodiscard]] std::optional<std::uint64_t> last_sequence() const { return last_; }
  [[nodiscard]] const StreamStatistics& statistics() const { return statistics_; }

 private:
  enum class Mode : std::uint8_t {
    Live,     // no replay runs
    Joining,  // replay from 0: whatever comes is the beginning
    Filling,  // replay from last_: must begin with that very message
  };
  struct Applied {
    std::uint64_t sequence = 0;
    std::uint64_t digest = 0;
  };

  bool verify(const Message& message, StreamStep& step);
  void accept(Message message, StreamStep& step);
  bool meets_live();
  void finish(bool closed, bool exhausted, StreamStep& step);
  [[nodiscard]] bool continues_live() const;
  void take_live(Message message, StreamStep& step);
  void drain(StreamStep& step);
  void recover_dropped(StreamStep& step);
  void ask(Mode mode, StreamStep& step);
  void ask_on(StreamStep& step);
  void keep(Message message, bool first);
  Message pop_buffered();
  void clear_buffered();
  void forget(StreamStep& step);
  [[nodiscard]] bool can_ask() const;
  [[nodiscard]] std::uint32_t asks_max() const;
  [[nodiscard]] bool seen(const Message& message) const;

  const StreamOptions options_;
  Mode mode_ = Mode::Live;
  bool gap_open_ = false;            // Filling because messages are missing
  bool verified_ = false;            // Filling: the message at last_ came again unchanged
  bool answered_ = false;            // the replay has said anything
  bool progressed_ = false;          // the replay has brought something new
  bool silent_ = false;              // as replay_silent()
  std::uint32_t empty_replays_ = 0;  // replays in a row that have brought nothing new (yet)
  std::uint32_t beginnings_ = 0;     // replays from 0 since a live message was applied
  bool exhausted_ = false;           // a replay has ended, and another one would bring no more
  std::optional<std::uint64_t> last_;
  std::deque<Applied> recent_;
  std::deque<Message> buffered_;
  HeldBytes held_;        // by buffered_
  bool dropped_ = false;  // a live message found no room since the last replay was asked for
  StreamStatistics statistics_;
};

}  // namespace sightline::events
