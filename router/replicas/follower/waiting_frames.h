// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "common/base/byte_budget.h"

#include "router/replicas/follower/statistics.h"
#include "router/replicas/frames/stream_message.h"

namespace sightline::follower {

// Frames of one epoch that arrived before an earlier one. Their bytes are limited, because a sender
// decides how many come.
// Thread safety: one thread at a time.
class WaitingFrames {
 public:
  // `held` is a second limit, of all holders together. Null: no budget.
  WaitingFrames(std::size_t bytes_max, ByteBudget* held) : bytes_max_(bytes_max), held_(held) {}

  // Keeps a frame. Returns the reason if it is dropped.
  std::optional<Drop> keep(frames::Frame frame);
  // Takes out the frame of this position, if it waits.
  std::optional<frames::Frame> take(std::uint64_t seq);
  // Drops all frames up to this position. They are applied, or a dump contains them.
  void drop_through(std::uint64_t seq);
  // Drops all frames.
  void clear();

  // The lowest position that waits.
  [[nodiscard]] std::optional<std::uint64_t> first() const;
  // Bytes in memory, about.
  [[nodiscard]] std::size_t bytes() const { return held_.bytes(); }

 private:
  // The bytes are kept with the frame: they must be removed exactly as they were added.
  struct WaitingFrame {
    frames::Frame frame;
    std::size_t bytes = 0;
  };
  std::size_t bytes_max_;
  HeldBytes held_;
  std::map<std::uint64_t, WaitingFrame> frames_;
};

}  // namespace sightline::follower
