// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "common/base/byte_budget.h"

#include "router/replicas/follower/statistics.h"
#include "router/replicas/frames/message.h"

namespace sightline::follower {

// Frames of one epoch that came before those in front of them, bounded by bytes.
// Thread safety: none.
class WaitingFrames {
 public:
  // held: what they are charged to besides; null: nothing.
  WaitingFrames(std::size_t bytes_max, ByteBudget* held) : bytes_max_(bytes_max), held_(held) {}

  // Why it was not kept; nothing: it is.
  std::optional<Drop> keep(frames::Frame frame);
  // The frame of that position, which waits no longer.
  std::optional<frames::Frame> take(std::uint64_t seq);
  void drop_through(std::uint64_t seq);
  void clear();

  [[nodiscard]] std::optional<std::uint64_t> first() const;
  [[nodiscard]] std::size_t bytes() const { return held_.bytes(); }

 private:
  struct Waiting {
    frames::Frame frame;
    std::size_t bytes = 0;
  };
  std::size_t bytes_max_;
  HeldBytes held_;
  std::map<std::uint64_t, Waiting> frames_;
};

}  // namespace sightline::follower
