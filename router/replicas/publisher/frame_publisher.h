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
#include "router/replicas/frames/stream_message.h"
#include "router/replicas/publisher/ask_limits.h"
#include "router/replicas/publisher/dumps.h"
#include "router/replicas/publisher/frame_ring.h"
#include "router/replicas/publisher/held_blocks.h"

namespace sightline::publisher {

// Limits and times of one stream.
struct PublisherOptions {
  // The most bytes of a message before it is sealed, at least kPayloadBytesMin. NATS servers take 1
  // MiB by default.
  std::size_t payload_bytes_max = (1U << 20U) - 64;
  std::size_t blocks_max = 16U << 20U;      // held blocks, 40 bytes each.
  std::size_t ring_bytes_max = 32U << 20U;  // of frames that readers can request again.
  std::size_t range_bytes_max = 8U << 20U;  // of one range. Longer ones need a dump.
  // Replies that wait for take_ready(). Further ones are dropped, and readers ask again.
  std::size_t replies_bytes_max = 64U << 20U;
  std::size_t frames_bytes_max = 64U << 20U;              // of frames that wait for take_ready().
  Duration flush_after = std::chrono::microseconds(250);  // an operation waits for others.
  Duration beat_every = std::chrono::seconds(1);
  Duration turn_beat_after = std::chrono::milliseconds(100);  // until changed facts get a beat.
  Duration look_for =
      std::chrono::seconds(1);  // a StreamQuestion with `look` waits for the engine.
  std::size_t looks_max = 256;  // waiting ones. Others are answered immediately.
  DumpOptions dump;
  ReaderLimitOptions readers;
};

// With less, a beat with the longest texts leaves no room for operations.
inline constexpr std::size_t kPayloadBytesMin = 4'096;

// What happened since the start.
struct PublisherStatistics {
  std::uint64_t epochs = 0;
  std::uint64_t frames = 0;
  std::uint64_t frames_unsent = 0;  // above frames_bytes_max.
  std::uint64_t beats = 0;
  std::uint64_t questions = 0;        // answered.
  std::uint64_t ranges = 0;           // sent again.
  std::uint64_t ranges_gone = 0;      // older than the ring, or too long.
  std::uint64_t epochs_gone = 0;      // requested when they were over.
  std::uint64_t dumps = 0;            // made.
  std::uint64_t dumps_anew = 0;       // started again, because too much changed.
  std::uint64_t dumps_gone = 0;       // requested after they were dropped.
  std::uint64_t chunks = 0;           // sent.
  std::uint64_t asks_refused = 0;     // above the limits of readers.
  std::uint64_t asks_repeated = 0;    // their number was not new.
  std::uint64_t replies_refused = 0;  // above replies_bytes_max.
  // Requests to another stream or an earlier run, not for agents, or for something that never was.
  std::uint64_t asks_foreign = 0;
  std::uint64_t relearns = 0;  // requests to resync that counted.
};

// A message to seal and send.
struct Outgoing {
  std::string reader;   // empty: all that follow the stream.
  std::string payload;  // encoded.
  // It names a position, so it must not overtake the frames before it.
  bool is_in_order = false;
};

// The agent's end of one stream: publishes to routers what one cache holds. An epoch begins when
// the facts prove that all blocks are known. Position 0 is the set of blocks held then. An epoch
// ends when the cache's own epoch changes, or when operations are lost. Its last frame empties the
// cache and gives the reason. A router that follows it holds at each position what the cache held.
// Callers pass operations and facts in the order in which they are true.
// Thread safety: one thread at a time.
class FramePublisher final : public operations::OperationSink {
 public:
  // `draw` returns 64 random bits, for epochs and names of dumps.
  FramePublisher(frames::StreamName stream, frames::Instance agent, PublisherOptions options,
                 std::function<std::uint64_t()> draw);
  // Applies and publishes an operation. `cache` is the cache of this stream.
  void take(const operations::CacheName& cache, const operations::Operation& operation) override;
  // Sets the time for the next calls of take().
  void pass(Instant now) { now_ = now; }
  // Sets the facts that hold after the operations so far. The next beat sends them.
  void tell(const operations::CacheName& cache, const operations::CacheFacts& facts,
            std::optional<std::chrono::milliseconds> lag_by_stamp, Instant now);
  // Operations were lost before they arrived here. Ends the epoch and publishes nothing until the
  // cache's own epoch changes. The caller must cause that change.
  void lose_continuity();
  // Lowers the most bytes of a message, to at least kPayloadBytesMin. Drops larger messages that
  // were already written. Routers get a dump instead. A limit above the present one changes
  // nothing.
  void limit_payload(std::size_t bytes_max);
  // Takes a message from the stream's subject for requests.
  void hear(const frames::Message& message, Instant now);
  // Works on a dump for half a millisecond. Call it repeatedly while is_making_dump().
  void step(Instant now);
  [[nodiscard]] bool is_making_dump() const { return dumps_.is_making(); }
  // Returns the messages to send, in this order: full frames, frames whose time has come, replies.
  std::vector<Outgoing> take_ready(Instant now);
  // When take_ready() will return more without another call before it.
  [[nodiscard]] std::optional<Instant> deadline() const;
  // Returns the last messages of the stream. No operation may be taken afterwards.
  std::vector<Outgoing> bye();
  // Each returns true once for each request: to resync the cache from the engine, and to read the
  // engine's events and then set the facts.
  bool take_relearn_wish() { return relearn_.take(); }
  bool take_look_wish() { return std::exchange(is_look_wished_, false); }
  // Whether one of these two would return true.
  [[nodiscard]] bool has_wish() const { return is_look_wished_ || relearn_.is_open(); }
  [[nodiscard]] std::optional<std::uint64_t> epoch() const { return epoch_; }
  [[nodiscard]] std::uint64_t position() const { return ring_.last(); }
  [[nodiscard]] const HeldBlocks& held() const { return held_; }
  [[nodiscard]] const PublisherStatistics& statistics() const { return statistics_; }
  // Bytes in use by blocks, ring, dumps and messages that wait.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Look {
    frames::StreamQuestion question;
    Instant asked_at{};
  };
  void follow(const operations::CacheName& cache);
  void end_epoch(const std::string& why);
  [[nodiscard]] bool is_proved() const;
  void append(const operations::Operation& operation);
  void append_part(operations::Operation part);
  // Writes a frame of the pending operations. Without any, only with a beat.
  void flush(bool with_beat);
  [[nodiscard]] frames::Beat beat() const;
  [[nodiscard]] Instant beat_at() const;
  void hear_body(const frames::StreamQuestion& question, Instant now);
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
  void answer(const frames::StreamQuestion& question, Instant now);
  void answer_looks(Instant now);
  void begin_dump();
  void reply(const std::string& reader, frames::Body body);
  void send_to(Outgoing message);
  std::vector<Outgoing> take_out();
  frames::StreamName stream_;
  frames::Instance agent_;
  PublisherOptions options_;
  std::size_t operation_bytes_max_;  // of a frame.
  std::function<std::uint64_t()> draw_;
  std::optional<std::uint64_t> cache_epoch_;  // CacheName::epoch.
  bool is_lost_ = false;                      // until cache_epoch_ changes.
  operations::CacheFacts facts_;
  std::optional<std::chrono::milliseconds> lag_by_stamp_;
  HeldBlocks held_;
  std::optional<std::uint64_t> epoch_;  // absent: no epoch is open.
  std::vector<operations::Operation> pending_;
  std::size_t pending_bytes_ = 0;
  Instant pending_since_{};
  // The newest time of a call.
  Instant now_{};
  Instant beaten_at_{};
  // The facts differ from those of the last beat.
  bool is_turned_ = false;
  FrameRing ring_;
  Dumps dumps_;
  ReaderLimits limits_;
  RelearnWish relearn_;
  std::vector<Look> looks_;
  bool is_look_wished_ = false;
  std::vector<Outgoing> out_;
  std::size_t replies_bytes_ = 0;  // in out_.
  std::size_t frames_bytes_ = 0;   // in out_ too.
  PublisherStatistics statistics_;
};

}  // namespace sightline::publisher
