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

#include "router/replicas/frames/message.h"
#include "router/replicas/publisher/chunk_writer.h"
#include "router/replicas/publisher/held_blocks.h"

namespace sightline::publisher {

struct DumpOptions {
  std::size_t chunk_bytes = 128U << 10U;  // encoded, at most
  std::size_t kept_max = 2;  // dumps that are made; that which is unused for longest makes room
  std::size_t kept_bytes_max = 512U << 20U;       // of their chunks; the newest is kept in any case
  Duration shared_for = std::chrono::seconds(2);  // whoever asks so soon is given the same
  // A reader that pulls a dump asks for chunks at least so often. While all that are kept are
  // pulled, the newest is given however old it is: another one would rob a reader of its own.
  Duration pulled_for = std::chrono::seconds(5);
  Duration kept_for = std::chrono::seconds(60);  // since a chunk of it was last asked for
  std::size_t readers_max = 1'024;               // that wait for the dump in the making
  // Blocks kept aside because they changed while the dump was made; beyond it is made anew.
  std::size_t changed_max = 1U << 20U;
  std::size_t blocks_per_step = 8'192;  // about 0.5 ms
};

// The dumps of one epoch: made in steps, shared, kept for a while. Thread safety: none.
class Dumps {
 public:
  // `draw`: random 64 bits, for the names of dumps.
  Dumps(frames::StreamName stream, DumpOptions options, std::function<std::uint64_t()> draw);

  enum class Asked : std::uint8_t {
    Given,    // the offer is there: see newest_offer()
    Waiting,  // it is told to the reader when it is made: see step()
    ToBegin,  // likewise, after begin() was called
    Refused,  // too many wait
  };
  // since: the first position from which on the frames are still there. A dump of an earlier one
  // is of no use and not given.
  Asked ask(const std::string& reader, std::uint64_t since, Instant now);
  [[nodiscard]] const frames::Offer& newest_offer() const { return made_.back().offer; }

  // Begins the dump of all that is held now, at this position of the epoch.
  void begin(HeldBlocks& held, std::uint64_t epoch, std::uint64_t seq);
  [[nodiscard]] bool is_making() const { return making_.has_value(); }

  enum class Stepped : std::uint8_t {
    More,
    Made,     // newest_offer() is to be sent to take_waiting()
    ToBegin,  // too much changed meanwhile: begin() again
  };
  // Needs is_making().
  Stepped step(HeldBlocks& held, Instant now);
  // Who was to be told.
  [[nodiscard]] std::set<std::string> take_waiting() { return std::exchange(waiting_, {}); }

  // The chunks of a dump, which counts as used; null: no such dump.
  const std::vector<std::string>* chunks(std::uint64_t dump, Instant now);
  // Dumps that nobody has used for so long are given up.
  void expire(Instant now);
  // All are of an epoch that is over, or their chunks too large.
  void drop_all(HeldBlocks& held);
  // Of dumps that begin from now on; as chunk_bytes.
  void limit_chunks(std::size_t bytes_max) {
    options_.chunk_bytes = std::min(options_.chunk_bytes, bytes_max);
  }
  [[nodiscard]] std::size_t bytes() const;
  // When the next one is given up.
  [[nodiscard]] std::optional<Instant> deadline() const;

 private:
  struct Made {
    frames::Offer offer;
    std::vector<std::string> chunks;
    std::size_t bytes = 0;
    Instant made_at{};
    Instant used_at{};
  };
  struct Making {
    frames::Offer offer;
    ChunkWriter writer;
  };

  [[nodiscard]] bool has_too_much() const;
  // Another one would take the place of one that is pulled.
  [[nodiscard]] bool would_rob(Instant now) const;
  void make_room();

  frames::StreamName stream_;
  DumpOptions options_;
  std::function<std::uint64_t()> draw_;
  std::optional<Making> making_;
  std::set<std::string> waiting_;
  std::deque<Made> made_;  // oldest first
};

}  // namespace sightline::publisher
