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

// What agents and the routers that follow them say to each other about the cache of one rank. An
// agent's words form a stream: epochs, each with positions from 1 on. Plain values.
namespace sightline::frames {

// One stream of one run of an agent. One that has ended does not go on: where the agent is given
// the worker back, it is another one.
struct Instance {
  std::string name;          // of the agent, for people
  std::uint64_t number = 0;  // drawn when the stream begins

  bool operator==(const Instance&) const = default;
};

// The state of a cache at one position.
struct Beat {
  operations::CacheDigest digest;  // of what the agent's operations up to here mean
  operations::CacheFacts facts;    // without health, reason and caught_up, which are not sent
  bool hearing = false;            // the agent hears its engine: nothing is known to be missing
  std::string trouble;             // why not, as one sentence
  bool capped = false;             // the agent has no room for all: the digest says nothing
  bool draining = false;
  // Applied - the engine's stamp of the last batch: two machines' clocks, for people only.
  std::optional<std::chrono::milliseconds> lag_by_stamp;

  bool operator==(const Beat&) const = default;
};

// Agent to all: what happened at one position. Every position has one frame, a beat or not.
struct Frame {
  std::uint64_t instance = 0;  // Instance::number
  std::uint64_t epoch = 0;     // random
  std::uint64_t seq = 0;       // from 1 on in each epoch
  std::vector<operations::Operation> operations;
  std::optional<Beat> beat;  // after these operations

  bool operator==(const Frame&) const = default;
};

// Agent to all: the stream ends.
struct Bye {
  std::uint64_t instance = 0;

  bool operator==(const Bye&) const = default;
};

// That an ask is new: an agent answers each once, however often somebody sends it again who
// recorded it, and those that name its stream were made since that began.
struct Freshness {
  std::uint64_t agent = 0;   // Instance::number of the stream that is asked; 0: not known yet
  std::uint64_t number = 0;  // counts up with each ask of the reader, from 1 on

  bool operator==(const Freshness&) const = default;
};

// Router to agent: who are you, and where?
struct Question {
  std::uint64_t nonce = 0;  // drawn for this question
  std::string reader;       // answers go to the subject `to.<reader>`, here and below
  bool look = false;        // look at the engine's events first
  Freshness freshness;      // may name another stream, or none

  bool operator==(const Question&) const = default;
};

struct Answer {
  std::uint64_t nonce = 0;
  Instance agent;
  std::optional<std::uint64_t> epoch;  // nothing: the agent's own view is not proved, see state
  std::uint64_t seq = 0;               // the last position; 0: none yet
  Beat state;                          // at that position
  // All that the engine announced until so long before the answer is applied at seq or before.
  std::optional<std::chrono::milliseconds> caught_up_ago;

  bool operator==(const Answer&) const = default;
};

// Router to agent: the frames from..to of the epoch again. The answer is those frames, or Gone.
struct RangeAsk {
  std::string reader;
  std::uint64_t epoch = 0;
  std::uint64_t from = 0;
  std::uint64_t to = 0;  // >= from
  Freshness freshness;

  bool operator==(const RangeAsk&) const = default;
};

// Router to agent: all that is held at one position. The answer is an Offer once it is made, or
// Gone.
struct DumpAsk {
  std::string reader;
  std::uint64_t epoch = 0;
  Freshness freshness;

  bool operator==(const DumpAsk&) const = default;
};

struct Offer {
  std::uint64_t dump = 0;  // drawn
  std::uint64_t epoch = 0;
  std::uint64_t seq = 0;       // the dump is what is held after this position
  std::uint32_t chunks = 0;    // 0: nothing is held
  std::uint64_t checksum = 0;  // Checksum of all chunks' operations in their order
  operations::CacheDigest digest;

  bool operator==(const Offer&) const = default;
};

// Router to agent: these chunks of the dump. The answers are Chunks, or Gone.
struct ChunkAsk {
  std::string reader;
  std::uint64_t dump = 0;
  std::vector<std::uint32_t> chunks;  // at most kChunksPerAskMax
  Freshness freshness;

  bool operator==(const ChunkAsk&) const = default;
};

struct Chunk {
  std::uint64_t dump = 0;
  std::uint32_t chunk = 0;
  std::vector<operations::Operation> operations;  // stores

  bool operator==(const Chunk&) const = default;
};

// Agent to one router: what was asked for is not to be had.
struct Gone {
  enum class What : std::uint8_t { Epoch, Range, Dump };
  What what = What::Epoch;
  std::uint64_t id = 0;  // the epoch asked about, or the dump

  bool operator==(const Gone&) const = default;
};

// Router to agent: what this epoch says disagrees with the engine's answers; learn it anew.
struct RelearnAsk {
  std::string reader;
  std::uint64_t epoch = 0;
  Freshness freshness;

  bool operator==(const RelearnAsk&) const = default;
};

using Body = std::variant<Frame, Bye, Question, Answer, RangeAsk, DumpAsk, Offer, ChunkAsk, Chunk,
                          Gone, RelearnAsk>;

// Which stream a message is of.
struct StreamName {
  std::string worker;      // its name in the configuration
  std::uint32_t rank = 0;  // data-parallel rank

  bool operator==(const StreamName&) const = default;
};

struct Message {
  StreamName stream;
  Body body;

  bool operator==(const Message&) const = default;
};

// Of operations in their order: both ends of a dump compute it.
class Checksum {
 public:
  void add(const operations::Operation& operation);
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void fold(std::uint64_t word) { value_ = operations::mixed({value_ ^ word}); }
  std::uint64_t value_ = 0;
};

}  // namespace sightline::frames
