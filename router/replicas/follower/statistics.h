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

#include "router/replicas/frames/stream_message.h"

namespace sightline::follower {

// Why a message was dropped.
enum class Drop : std::uint8_t {
  // A frame of another agent than the followed one.
  OtherAgent,
  // A frame or a reply of another epoch than the followed one.
  OtherEpoch,
  // A frame whose position is applied or waits, or a chunk that came before.
  Repeated,
  // No room for a frame or chunk that must wait. The router requests it again.
  NoRoom,
  // No answer to an open question, or older than an earlier answer.
  StaleAnswer,
  // An answer of an agent that said that it ends.
  EndedAgent,
  // An offer, a chunk or a refusal that was not requested.
  OtherDump,
  // It breaks the rules of its kind.
  Malformed,
  // A message that only routers send.
  OtherReader,
  // A chunk beyond the blocks that its dump announced.
  TooMuch,
};
inline constexpr std::size_t kDropCount = 10;

// The reason as the value of a metric's label: "other-agent", …
std::string_view name_of(Drop drop);

// Counts since the follower was made.
struct FollowerStatistics {
  std::uint64_t frames = 0;  // applied.
  std::uint64_t operations = 0;
  // Of beats, answers and dumps.
  std::uint64_t digests_equal = 0;
  // Different, although no block was refused.
  std::uint64_t digests_unequal = 0;
  // The index or the agent lacks room for all blocks.
  std::uint64_t digests_capped = 0;
  // Gaps that were noticed.
  std::uint64_t gaps = 0;
  std::uint64_t questions = 0;
  std::uint64_t range_asks = 0;
  std::uint64_t dump_asks = 0;
  std::uint64_t chunk_asks = 0;
  std::uint64_t chunks_asked_again = 0;
  std::uint64_t relearn_asks = 0;
  // Wanted within the pause after the last one.
  std::uint64_t relearn_put_off = 0;
  // Begun.
  std::uint64_t epochs = 0;
  // Applied as a whole.
  std::uint64_t dumps = 0;
  // Dropped, or different from their offer.
  std::uint64_t dumps_failed = 0;
  // A second agent appeared.
  std::uint64_t contests = 0;
  // All blocks were dropped, because no answer proved them.
  std::uint64_t forgotten = 0;
  std::array<std::uint64_t, kDropCount> dropped{};

  // Messages that were dropped for this reason.
  [[nodiscard]] std::uint64_t of(Drop drop) const {
    return dropped[static_cast<std::size_t>(drop)];
  }
};

// The state of a follower, for status endpoints.
struct FollowerStatus {
  std::optional<frames::Instance> agent;  // the followed one
  std::optional<std::uint64_t> epoch;
  // Applied up to here. Absent: no dump is applied.
  std::optional<std::uint64_t> position;
  // The last known position of the epoch.
  std::uint64_t head = 0;
  // When the newest question was sent that was answered by an agent that receives its engine's
  // events.
  std::optional<Instant> good_beat_at;
  // Since when the agent that answered last is dead. Absent: it lives, or NATS is to blame.
  std::optional<Instant> dead_since;
  // Its name, with dead_since.
  std::string dead_agent;
  // When the last equal digest was compared.
  std::optional<Instant> digest_equal_at;
  // Of the last beat.
  std::optional<std::chrono::milliseconds> lag_by_stamp;
  // All that answer.
  std::vector<frames::Instance> agents;
  // Of frames that wait for earlier ones.
  std::size_t waiting_bytes = 0;
};

}  // namespace sightline::follower
