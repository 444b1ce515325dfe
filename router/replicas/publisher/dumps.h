// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"

#include "router/replicas/frames/stream_message.h"
#include "router/replicas/publisher/chunk_writer.h"
#include "router/replicas/publisher/held_blocks.h"

namespace sightline::publisher {

// Limits on the dumps of one stream.
struct DumpOptions {
  // The most bytes of an encoded chunk.
  std::size_t chunk_bytes = 128U << 10U;
  // Dumps that are kept. The one that was not used for the longest time makes room.
  std::size_t kept_max = 2;
  // The most bytes of their chunks. The newest dump is kept in any case.
  std::size_t kept_bytes_max = 512U << 20U;
  // A reader that asks within this time after a dump was made gets the same dump.
  Duration shared_for = std::chrono::seconds(2);
  // A reader that pulls a dump requests chunks at least this often. If readers pull all kept dumps,
  // a further reader gets the newest one, at any age. Another dump would evict one that a reader
  // still needs.
  Duration pulled_for = std::chrono::seconds(5);
  // A dump is dropped when no reader has requested a chunk for this time.
  Duration kept_for = std::chrono::seconds(60);
  // Readers that wait for the dump in progress.
  std::size_t readers_max = 1'024;
  // Copies of blocks that changed while a dump is made. Above this number the dump is started
  // again.
  std::size_t changed_max = 1U << 20U;
  std::size_t blocks_per_step = 8'192;  // about 0.5 ms of work
};

// The dumps of one epoch. They are made in steps, shared by readers and kept for a while.
// Thread safety: one thread at a time.
class Dumps {
 public:
  // `draw` returns 64 random bits, for the names of dumps.
  Dumps(frames::StreamName stream, DumpOptions options, std::function<std::uint64_t()> draw);

  // The result of a request for a dump.
  enum class DumpRequestResult : std::uint8_t {
    // A dump is there, see newest_offer().
    Given,
    // The reader gets the offer when the dump in progress is made, see step().
    Waiting,
    // The same, after the caller called begin().
    ToBegin,
    // Too many readers wait.
    Refused,
  };
  // `since` is the oldest position whose frame the agent still has. A dump that ends before it is
  // not given, because the reader could not get the frames after it.
  DumpRequestResult ask(const std::string& reader, std::uint64_t since, Instant now);
  // The offer of the newest dump. Needs one, see DumpRequestResult::Given and Stepped::Made.
  [[nodiscard]] const frames::Offer& newest_offer() const { return made_.back().offer; }

  // Begins a dump of all blocks that are held at this moment, at this position of the epoch.
  void begin(HeldBlocks& held, std::uint64_t epoch, std::uint64_t seq);
  [[nodiscard]] bool is_making() const { return making_.has_value(); }

  // The result of a step.
  enum class Stepped : std::uint8_t {
    // The dump is not complete.
    More,
    // The caller sends newest_offer() to take_waiting().
    Made,
    // Too many blocks changed in the meantime. The caller calls begin() again.
    ToBegin,
  };
  // Works on the dump in progress for about half a millisecond. Needs is_making().
  Stepped step(HeldBlocks& held, Instant now);
  // Returns the readers that wait for an offer, once.
  [[nodiscard]] std::set<std::string> take_waiting() { return std::exchange(waiting_, {}); }

  // Returns the chunks of a dump, and marks the dump as used. Null: there is no dump of this name.
  const std::vector<std::string>* chunks(std::uint64_t dump, Instant now);
  // Drops the dumps that no reader has used for kept_for.
  void expire(Instant now);
  // Drops all dumps, because their epoch is over or their chunks are too large. Readers that wait
  // stay.
  void drop_all(HeldBlocks& held);
  // Limits the chunks of dumps that begin from now on.
  void limit_chunks(std::size_t bytes_max) {
    options_.chunk_bytes = std::min(options_.chunk_bytes, bytes_max);
  }
  // Bytes of all kept chunks.
  [[nodiscard]] std::size_t bytes() const;
  // When expire() will drop the next dump.
  [[nodiscard]] std::optional<Instant> deadline() const;

 private:
  // A complete dump.
  struct Made {
    frames::Offer offer;
    std::vector<std::string> chunks;
    std::size_t bytes = 0;
    Instant made_at{};
    Instant used_at{};
  };
  // The dump in progress.
  struct Making {
    frames::Offer offer;
    ChunkWriter writer;
  };

  [[nodiscard]] bool has_too_much() const;
  // Whether another dump would evict one that a reader pulls.
  [[nodiscard]] bool would_rob(Instant now) const;
  // Drops old dumps above the limits, but not the newest.
  void make_room();

  frames::StreamName stream_;
  DumpOptions options_;
  std::function<std::uint64_t()> draw_;
  std::optional<Making> making_;
  std::set<std::string> waiting_;
  std::deque<Made> made_;  // oldest first
};

}  // namespace sightline::publisher
