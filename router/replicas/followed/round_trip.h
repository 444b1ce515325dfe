// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "common/base/clock.h"

namespace sightline::followed {

// How long a message of this process takes through NATS and back to this process, by its own clock.
// A question to an agent takes the same way out, and its answer the same way in: where nothing
// comes back in time, what agents send is late as well, and no agent is to blame.
// Thread safety: none.
class RoundTrip {
 public:
  // draw: random 64 bits. A process counts as connected when it starts.
  RoundTrip(Duration every, std::function<std::uint64_t()> draw, Instant now)
      : every_(every), draw_(std::move(draw)), fresh_at_(now), next_(now) {}

  // The number that is to be sent now; nothing before due().
  std::optional<std::uint64_t> turn(Instant now);
  // A number came. One that was not sent, or that came before, changes nothing.
  void heard(std::uint64_t number, Instant now);

  [[nodiscard]] Instant due() const { return next_; }
  // When the newest number was sent that has come back.
  [[nodiscard]] Instant fresh_at() const { return fresh_at_; }
  // What the newest one took, or how long the oldest has been under way, whichever is longer.
  [[nodiscard]] Duration taken(Instant now) const;

  // Numbers that are under way; of older ones the return is not noticed.
  static constexpr std::size_t kOpenMax = 128;

 private:
  struct Sent {
    std::uint64_t number = 0;
    Instant at{};
  };

  const Duration every_;
  std::function<std::uint64_t()> draw_;
  std::deque<Sent> open_;  // oldest first
  Instant fresh_at_;
  Instant next_;
  Duration taken_{};
};

}  // namespace sightline::followed
