// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"

#include "router/replicas/frames/message.h"

namespace sightline::follower {

// Why a message was not used.
enum class Drop : std::uint8_t {
  OtherAgent,   // a frame of an agent that is not followed
  OtherEpoch,   // a frame, or what was asked for, of an epoch that is not followed
  Repeated,     // a frame of a position that is applied, or waits already
  NoRoom,       // a frame that would wait, for which there is no room: a gap
  StaleAnswer,  // no answer to a question that is open, or an older one than was heard
  EndedAgent,   // an answer of an agent that said that it ends
  OtherDump,    // an offer, a chunk or a refusal that was not asked for
  Malformed,    // breaks the rules of its kind
  OtherReader,  // what only routers say
  TooMuch,      // a dump's chunk beyond the blocks that it offered
};
inline constexpr std::size_t kDropCount = 10;

// As a metric's label: "other-agent", ...
std::string_view name_of(Drop drop);

// Since the follower was made.
struct FollowerStatistics {
  std::uint64_t frames = 0;  // applied
  std::uint64_t operations = 0;
  std::uint64_t digests_equal = 0;    // of beats, answers and dumps
  std::uint64_t digests_unequal = 0;  // nothing was refused and yet they differ
  std::uint64_t digests_capped = 0;   // not comparable: one of both has no room for all
  std::uint64_t gaps = 0;
  std::uint64_t questions = 0;
  std::uint64_t range_asks = 0;
  std::uint64_t dump_asks = 0;
  std::uint64_t chunk_asks = 0;
  std::uint64_t chunks_asked_again = 0;
  std::uint64_t relearn_asks = 0;
  std::uint64_t relearn_put_off = 0;  // wishes within the pause
  std::uint64_t epochs = 0;           // begun
  std::uint64_t dumps = 0;            // applied as a whole
  std::uint64_t dumps_failed = 0;     // given up, or not what they were said to be
  std::uint64_t contests = 0;         // two agents where there was one
  std::uint64_t forgotten = 0;        // times that all was dropped for want of a good beat
  std::array<std::uint64_t, kDropCount> dropped{};

  [[nodiscard]] std::uint64_t of(Drop drop) const {
    return dropped[static_cast<std::size_t>(drop)];
  }
};

// Where a follower is, to be shown.
struct FollowerStatus {
  std::optional<frames::Instance> agent;  // the one followed
  std::optional<std::uint64_t> epoch;
  std::optional<std::uint64_t> position;  // applied up to here; nothing: a dump is awaited
  std::uint64_t head = 0;                 // last position of the epoch that is known of
  // When the last question was asked that an agent answered which hears its engine.
  std::optional<Instant> good_beat_at;
  // Since when the agent that answered last is dead; nothing: it lives, or NATS is to blame.
  std::optional<Instant> dead_since;
  std::string dead_agent;                                 // its name, with dead_since
  std::optional<Instant> digest_equal_at;                 // the last that was equal
  std::optional<std::chrono::milliseconds> lag_by_stamp;  // as in the last beat
  std::vector<frames::Instance> agents;                   // all that answer
  std::size_t waiting_bytes = 0;                          // frames that wait for others
};

}  // namespace sightline::follower
