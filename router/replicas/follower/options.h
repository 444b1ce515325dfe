// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/byte_budget.h"
#include "common/base/clock.h"

namespace sightline::follower {

// When a router's end of a stream sends requests, how long it waits, and when it drops state.
struct FollowerOptions {
  // The age, by our own clock, of the newest answered question. From this age on, the held blocks
  // are not proved. An answer that took this long proves nothing either. The setting is
  // `replica.stale_after`.
  Duration stale_after = std::chrono::seconds(5);
  // From this age on, the held blocks are dropped.
  Duration dropped_after = std::chrono::seconds(60);
  // If there are two agents, one that answers nothing for this time is gone.
  Duration silent_after = std::chrono::seconds(3);
  // Answers come every second. After this time one was lost and the next is late, so the router
  // asks at another time.
  Duration answer_late_after = std::chrono::seconds(2);
  // The pause between questions while all is well. The answers prove that received frames are not
  // old. They also show a loss at the end of the stream, which no later frame would show.
  Duration question_every = std::chrono::seconds(1);
  // The same while there are two agents.
  Duration question_every_contested = std::chrono::milliseconds(500);
  // The least and the most pause between questions that an event causes.
  Duration question_pause_min = std::chrono::milliseconds(200);
  Duration question_pause_max = std::chrono::seconds(2);
  // Requests for a range or a dump are repeated after the least pause, then twice that, up to the
  // most.
  Duration range_retry_min = std::chrono::milliseconds(250);
  Duration range_retry_max = std::chrono::seconds(4);
  Duration dump_retry_min = std::chrono::seconds(1);
  Duration dump_retry_max = std::chrono::seconds(30);
  // A chunk that has not come is requested again, with pauses from the least to the most.
  Duration chunk_retry_min = std::chrono::milliseconds(500);
  Duration chunk_retry_max = std::chrono::seconds(2);
  // A dump that brings nothing new for this time is dropped. The router requests another one.
  Duration dump_silent_after = std::chrono::seconds(10);
  // The least and the most pause between two requests to resync.
  Duration relearn_pause_min = std::chrono::seconds(1);
  Duration relearn_pause_max = std::chrono::minutes(5);
  // First requests wait for a random part of this time, because all routers notice the same event
  // at the same moment. The events are a gap, and the return of NATS.
  Duration gap_spread = std::chrono::milliseconds(20);
  Duration heal_spread = std::chrono::seconds(1);
  // The most bytes in memory of frames that arrived before an earlier one.
  std::size_t waiting_bytes_max = std::size_t{16} << 20U;
  // The budget for these frames and for a dump's chunks that wait. Null: no budget. It outlives the
  // follower.
  ByteBudget* held = nullptr;
  // The most bytes of an encoded chunk. Agents make chunks of 128 KiB.
  std::size_t chunk_bytes_max = std::size_t{1} << 20U;
  std::uint32_t chunk_window = 8;  // requested and not yet applied chunks
  // The frames of one request. A longer gap takes several requests, one after the other. Agents
  // refuse ranges of too many bytes, and then a dump would be needed, which takes longer.
  std::uint64_t range_frames_max = 1'024;
};

}  // namespace sightline::follower
