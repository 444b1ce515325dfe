// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/byte_budget.h"
#include "common/base/clock.h"

namespace sightline::follower {

// When the router's end of a stream asks, waits and gives up.
struct FollowerOptions {
  // Where the newest question that was answered is so old, by our own clock, what is held is not
  // proved: replica.stale_after. Nor does an answer that took so long prove anything.
  Duration stale_after = std::chrono::seconds(5);
  // And is forgotten after so long.
  Duration dropped_after = std::chrono::seconds(60);
  // Of two agents, one that answers nothing for so long is no longer there.
  Duration silent_after = std::chrono::seconds(3);
  // Answers come every second: one was lost and the next is late.
  Duration answer_late_after = std::chrono::seconds(2);
  // Between questions while all is well: the answers show that what is heard is not old, and a loss
  // at the end of the stream.
  Duration question_every = std::chrono::seconds(1);
  // While there are two agents.
  Duration question_every_contested = std::chrono::milliseconds(500);
  // Least and most time between questions that something calls for.
  Duration question_pause_min = std::chrono::milliseconds(200);
  Duration question_pause_max = std::chrono::seconds(2);
  // Asks for a range or a dump are repeated after so long, then twice that, up to the most.
  Duration range_retry_min = std::chrono::milliseconds(250);
  Duration range_retry_max = std::chrono::seconds(4);
  Duration dump_retry_min = std::chrono::seconds(1);
  Duration dump_retry_max = std::chrono::seconds(30);
  // A chunk that has not come is asked for again, up to the most between two asks.
  Duration chunk_retry_min = std::chrono::milliseconds(500);
  Duration chunk_retry_max = std::chrono::seconds(2);
  // A dump of which nothing new comes for so long is given up for another.
  Duration dump_silent_after = std::chrono::seconds(10);
  // Least and most time between two asks to relearn.
  Duration relearn_pause_min = std::chrono::seconds(1);
  Duration relearn_pause_max = std::chrono::minutes(5);
  // First asks wait a random part of this, so that all readers do not ask at once: after a gap, and
  // after the connection to NATS is made again.
  Duration gap_spread = std::chrono::milliseconds(20);
  Duration heal_spread = std::chrono::seconds(1);
  // Frames that came before those in front of them, in bytes of memory.
  std::size_t waiting_bytes_max = std::size_t{16} << 20U;
  // What these, and a dump's chunks that wait, are charged to besides; null: nothing. It outlives
  // the follower.
  ByteBudget* held = nullptr;
  // Longest chunk that is taken, as encoded; agents make them of 128 KiB.
  std::size_t chunk_bytes_max = std::size_t{1} << 20U;
  std::uint32_t chunk_window = 8;  // chunks asked for and not yet applied
  // Frames of one ask; a longer gap takes several, one after the other. Agents refuse ranges of too
  // many bytes, and a dump in their place takes longer.
  std::uint64_t range_frames_max = 1'024;
};

}  // namespace sightline::follower
