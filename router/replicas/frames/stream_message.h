// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "router/cache/operations/digest.h"
#include "router/cache/operations/facts.h"
#include "router/cache/operations/operation.h"

// Messages between agents and the routers that follow them, about the cache of one rank. An agent's
// messages form a stream. It consists of epochs, each with positions from 1 on. All types are plain
// values.
namespace sightline::frames {

// One stream of one run of an agent. A stream that has ended never continues. If the agent gets the
// worker back, it begins another stream with another number.
struct Instance {
  std::string name;          // of the agent, for people
  std::uint64_t number = 0;  // random, drawn when the stream begins
  bool operator==(const Instance&) const = default;
};

// The state of a cache at one position of its stream.
struct Beat {
  // The digest of all operations up to this position.
  operations::CacheDigest digest;
  // Without health, reason, draining and caught_up, which are not sent.
  operations::CacheFacts facts;
  // The agent receives its engine's events, and nothing is missing.
  bool hearing = false;
  // Why not, as one sentence.
  std::string trouble;
  // The agent has no room for all blocks. The digest then proves nothing.
  bool capped = false;
  bool draining = false;
  // The time from the engine's stamp of the last batch to its application. It compares the clocks
  // of two machines, so it is only shown to people.
  std::optional<std::chrono::milliseconds> lag_by_stamp;
  bool operator==(const Beat&) const = default;
};

// Agent to all routers: what happened at one position. Each position has exactly one frame, with or
// without a beat.
struct Frame {
  std::uint64_t instance = 0;  // Instance::number
  std::uint64_t epoch = 0;     // random
  std::uint64_t seq = 0;       // from 1 on in each epoch
  std::vector<operations::Operation> operations;
  std::optional<Beat> beat;  // after these operations
  bool operator==(const Frame&) const = default;
};

// Agent to all routers: the stream ends.
struct Bye {
  std::uint64_t instance = 0;
  bool operator==(const Bye&) const = default;
};

// Proof that a request is new. The agent answers each number of a reader once, even if an attacker
// sends a recorded request again. A request that names the agent's stream was made after that
// stream began.
struct Freshness {
  std::uint64_t agent = 0;   // the asked stream's Instance::number, 0: not known yet
  std::uint64_t number = 0;  // grows with each request of the reader, from 1 on
  bool operator==(const Freshness&) const = default;
};

// Router to agent: which agent serves this stream, and at which position is it?
struct StreamQuestion {
  std::uint64_t nonce = 0;  // Random, drawn for this question.
  std::string reader;       // Replies go to the subject `to.<reader>`, here and below.
  bool look = false;        // Read the engine's events before the answer.
  Freshness freshness;      // May name another stream, or no stream.
  bool operator==(const StreamQuestion&) const = default;
};

// Agent to one router: the reply to a StreamQuestion.
struct StreamAnswer {
  std::uint64_t nonce = 0;
  Instance agent;
  // Absent: the agent's own view is not proved. The state says why.
  std::optional<std::uint64_t> epoch;
  // The last position, 0 if there is no position yet.
  std::uint64_t seq = 0;
  // The state at seq.
  Beat state;
  // The age, at this answer, of the moment up to which all announcements of the engine are applied.
  // They are applied at seq or earlier.
  std::optional<std::chrono::milliseconds> caught_up_ago;
  bool operator==(const StreamAnswer&) const = default;
};

// Router to agent: send the frames from..to of the epoch again. The replies are these frames, or
// Gone.
struct RangeAsk {
  std::string reader;
  std::uint64_t epoch = 0;
  std::uint64_t from = 0;
  std::uint64_t to = 0;  // >= from
  Freshness freshness;
  bool operator==(const RangeAsk&) const = default;
};

// Router to agent: send all blocks that are held at one position. The reply is an Offer when the
// dump is made, or NotAvailable.
struct DumpAsk {
  std::string reader;
  std::uint64_t epoch = 0;
  Freshness freshness;
  bool operator==(const DumpAsk&) const = default;
};

// Agent to one router: a dump is ready.
struct Offer {
  // Random name of the dump.
  std::uint64_t dump = 0;
  std::uint64_t epoch = 0;
  std::uint64_t seq = 0;       // the dump is what the cache holds after this position
  std::uint32_t chunks = 0;    // 0: the cache holds nothing
  std::uint64_t checksum = 0;  // Checksum over the operations of all chunks, in order
  operations::CacheDigest digest;
  bool operator==(const Offer&) const = default;
};

// Router to agent: send these chunks of the dump. The replies are DumpChunks, or NotAvailable.
struct ChunkAsk {
  std::string reader;
  std::uint64_t dump = 0;
  std::vector<std::uint32_t> chunks;  // at most kChunksPerAskMax
  Freshness freshness;
  bool operator==(const ChunkAsk&) const = default;
};

// Agent to one router: one part of a dump.
struct DumpChunk {
  std::uint64_t dump = 0;
  std::uint32_t chunk = 0;
  std::vector<operations::Operation> operations;  // only Store
  bool operator==(const DumpChunk&) const = default;
};

// Agent to one router: the agent does not have what the router asked for.
struct NotAvailable {
  enum class MissingPart : std::uint8_t { Epoch, Range, Dump };
  MissingPart what = MissingPart::Epoch;
  // The requested epoch, or the dump.
  std::uint64_t id = 0;
  bool operator==(const NotAvailable&) const = default;
};

// Router to agent: the blocks of this epoch contradict the engine's answers. Resync them from the
// engine.
struct RelearnAsk {
  std::string reader;
  std::uint64_t epoch = 0;
  Freshness freshness;
  bool operator==(const RelearnAsk&) const = default;
};

// The index of a body is the first byte of its message on the wire.
using Body = std::variant<Frame, Bye, StreamQuestion, StreamAnswer, RangeAsk, DumpAsk, Offer,
                          ChunkAsk, DumpChunk, NotAvailable, RelearnAsk>;

// Names the stream that a message belongs to.
struct StreamName {
  std::string worker;      // its name in the configuration
  std::uint32_t rank = 0;  // data-parallel rank
  bool operator==(const StreamName&) const = default;
};

// One message, as stream_codec.h writes and reads it.
struct Message {
  StreamName stream;
  Body body;
  bool operator==(const Message&) const = default;
};

// A 64-bit checksum of operations in their order. Both ends of a dump compute it. It detects lost
// or swapped chunks. Forged ones are rejected by the envelope's tag.
class Checksum {
 public:
  void add(const operations::Operation& operation);
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void fold(std::uint64_t word) { value_ = operations::mixed({value_ ^ word}); }
  std::uint64_t value_ = 0;
};

}  // namespace sightline::frames
