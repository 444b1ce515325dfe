// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"

#include "router/cache/operations/facts.h"
#include "router/cache/operations/operation.h"
#include "router/replicas/frames/message.h"
#include "router/replicas/publisher/ask_limits.h"
#include "router/replicas/publisher/dumps.h"
#include "router/replicas/publisher/frame_ring.h"
#include "router/replicas/publisher/held_blocks.h"

namespace sightline::publisher {

struct PublisherOptions {
  // Of a message before it is sealed, at least kPayloadBytesMin. NATS servers take 1 MiB.
  std::size_t payload_bytes_max = (1U << 20U) - 64;
  std::size_t blocks_max = 16U << 20U;      // held; 40 bytes each
  std::size_t ring_bytes_max = 32U << 20U;  // of frames that can be had again
  std::size_t range_bytes_max = 8U << 20U;  // of one range; a dump instead of a longer one
  // Of replies that wait for take_ready(); what is more is not sent, and asked for again.
  std::size_t replies_bytes_max = 64U << 20U;
  std::size_t frames_bytes_max = 64U << 20U;              // likewise of frames
  Duration flush_after = std::chrono::microseconds(250);  // an operation waits for others
  Duration beat_every = std::chrono::seconds(1);
  Duration turn_beat_after = std::chrono::milliseconds(100);  // news of facts wait for so long
  Duration look_for = std::chrono::seconds(1);  // a question with `look` waits for the engine
  std::size_t looks_max = 256;                  // that wait; others are answered at once
  DumpOptions dump;
  ReaderLimitOptions readers;
};

// Below it a beat with the longest texts and some operations have no room.
inline constexpr std::size_t kPayloadBytesMin = 4'096;

// What happened since the start.
struct PublisherStatistics {
  std::uint64_t epochs = 0;
  std::uint64_t frames = 0;
  std::uint64_t frames_unsent = 0;  // above frames_bytes_max
  std::uint64_t beats = 0;
  std::uint64_t questions = 0;        // answered
  std::uint64_t ranges = 0;           // sent again
  std::uint64_t ranges_gone = 0;      // older than the ring, or too long
  std::uint64_t epochs_gone = 0;      // asked about when they were over
  std::uint64_t dumps = 0;            // made
  std::uint64_t dumps_anew = 0;       // begun again: too much changed meanwhile
  std::uint64_t dumps_gone = 0;       // asked about when they were given up
  std::uint64_t chunks = 0;           // sent
  std::uint64_t asks_refused = 0;     // above the limits of readers
  std::uint64_t asks_repeated = 0;    // not newer than what was heard of the reader
  std::uint64_t replies_refused = 0;  // above replies_bytes_max
  // Of another stream or one before this, not for agents, or for what never was.
  std::uint64_t asks_foreign = 0;
  std::uint64_t relearns = 0;  // wishes that counted
};

// A message to be sealed and sent.
struct Outgoing {
  std::string reader;   // empty: to all that follow the stream
  std::string payload;  // encoded
  // Not to be there before the frames that were ready before it: it names their position.
  bool is_in_order = false;
};

// The agent's end of one stream: what one cache holds, told to routers. An epoch begins once the
// facts say that all is known, at position 0 with what is held then, and ends when the cache's own
// epoch changes or its operations are lost: its last frame empties the cache and says why. Whoever
// follows it holds at each position what the cache held.
// Operations and facts come in the order in which they are true. Thread safety: none.
class FramePublisher final : public operations::OperationSink {
 public:
  // `draw`: random 64 bits, for epochs and names of dumps.
  FramePublisher(frames::StreamName stream, frames::Instance agent, PublisherOptions options,
                 std::function<std::uint64_t()> draw);

  // `cache` is that of the stream.
  void take(const operations::CacheName& cache, const operations::Operation& operation) override;
  // When what is taken next comes; other methods are told themselves.
  void pass(Instant now) { now_ = now; }
  void tell(const operations::CacheName& cache, const operations::CacheFacts& facts,
            std::optional<std::chrono::milliseconds> lag_by_stamp, Instant now);
  // Operations were lost on their way here: nothing is published until the cache's epoch changes,
  // which the caller sees to.
  void lose_continuity();
  // Whoever carries the messages takes no more bytes of each than this, at least kPayloadBytesMin.
  // What was written already and is larger can no longer be had: a dump takes its place. A limit
  // above the one before changes nothing.
  void limit_payload(std::size_t bytes_max);
  // A message on the stream's subject for asks.
  void hear(const frames::Message& message, Instant now);

  // Some of the work of a dump, half a millisecond; to be called while is_making_dump().
  void step(Instant now);
  [[nodiscard]] bool is_making_dump() const { return dumps_.is_making(); }
  // What is to be sent, in this order: full frames, those whose time has come, replies.
  std::vector<Outgoing> take_ready(Instant now);
  // When take_ready() will have more without being told anything.
  [[nodiscard]] std::optional<Instant> deadline() const;
  // What is to be sent when the agent ends. Nothing is to be taken afterwards.
  std::vector<Outgoing> bye();

  // True once for each wish: learn from the engine anew; look at what it announced by now, and
  // tell the facts.
  bool take_relearn_wish() { return relearn_.take(); }
  bool take_look_wish() { return std::exchange(is_look_wished_, false); }
  // Either of them is there to be taken.
  [[nodiscard]] bool has_wish() const { return is_look_wished_ || relearn_.is_open(); }

  [[nodiscard]] std::optional<std::uint64_t> epoch() const { return epoch_; }
  [[nodiscard]] std::uint64_t position() const { return ring_.last(); }
  [[nodiscard]] const HeldBlocks& held() const { return held_; }
  [[nodiscard]] const PublisherStatistics& statistics() const { return statistics_; }
  // Of blocks, ring, dumps, what waits to be sent; in use now.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Look {
    frames::Question question;
    Instant asked_at{};
  };

  void follow(const operations::CacheName& cache);
  void end_epoch(const std::string& why);
  [[nodiscard]] bool is_proved() const;
  void append(const operations::Operation& operation);
  void append_part(operations::Operation part);
  // Writes what is pending, if anything is or with a beat.
  void flush(bool with_beat);
  [[nodiscard]] frames::Beat beat() const;
  [[nodiscard]] Instant beat_at() const;

  void hear_body(const frames::Question& question, Instant now);
  void hear_body(const frames::RangeAsk& ask, Instant now);
  void hear_body(const frames::DumpAsk& ask, Instant now);
  void hear_body(const frames::ChunkAsk& ask, Instant now);
  void hear_body(const frames::RelearnAsk& ask, Instant now);
  template <class Body>
  void hear_body(const Body& /*not_for_agents*/, Instant /*now*/) {
    ++statistics_.asks_foreign;
  }
  bool admit(const std::string& reader, const frames::Freshness& freshness, Instant now);
  template <class Ask>
  bool admit_of_this_stream(const Ask& ask, Instant now) {
    if (ask.freshness.agent == agent_.number) return admit(ask.reader, ask.freshness, now);
    ++statistics_.asks_foreign;
    return false;
  }
  bool refuse_other_epoch(const std::string& reader, std::uint64_t epoch);
  void answer(const frames::Question& question, Instant now);
  void answer_looks(Instant now);
  void begin_dump();
  void reply(const std::string& reader, frames::Body body);
  void send_to(Outgoing message);
  std::vector<Outgoing> take_out();

  frames::StreamName stream_;
  frames::Instance agent_;
  PublisherOptions options_;
  std::size_t operation_bytes_max_;  // of a frame
  std::function<std::uint64_t()> draw_;

  std::optional<std::uint64_t> cache_epoch_;  // of CacheName
  bool is_lost_ = false;                      // until that one changes
  operations::CacheFacts facts_;
  std::optional<std::chrono::milliseconds> lag_by_stamp_;
  HeldBlocks held_;

  std::optional<std::uint64_t> epoch_;  // nothing: none is open
  std::vector<operations::Operation> pending_;
  std::size_t pending_bytes_ = 0;
  Instant pending_since_{};
  Instant now_{};  // the last that was told
  Instant beaten_at_{};
  bool is_turned_ = false;  // the facts differ from those of the last beat
  FrameRing ring_;
  Dumps dumps_;
  ReaderLimits limits_;
  RelearnWish relearn_;
  std::vector<Look> looks_;
  bool is_look_wished_ = false;
  std::vector<Outgoing> out_;
  std::size_t replies_bytes_ = 0;  // in out_
  std::size_t frames_bytes_ = 0;   // likewise
  PublisherStatistics statistics_;
};

}  // namespace sightline::publisher
