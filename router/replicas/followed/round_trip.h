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

// Measures how long a message of this process takes through NATS and back, by the process's own
// clock. A question to an agent takes the same way out, and its answer the same way in. If nothing
// comes back in time, agents' messages are late too, and no agent is at fault.
// Thread safety: one thread at a time.
class RoundTrip {
 public:
  // `every` is the pause between numbers. `draw` returns 64 random bits, so no other process can
  // guess a valid number. At construction the process counts as fresh.
  RoundTrip(Duration every, std::function<std::uint64_t()> draw, Instant now)
      : every_(every), draw_(std::move(draw)), fresh_at_(now), next_(now) {}

  // Returns the number to send now, or nothing before due().
  std::optional<std::uint64_t> turn(Instant now);
  // Takes a number that came back. Ignores a number that was not sent or that came before.
  void heard(std::uint64_t number, Instant now);

  // When turn() returns the next number.
  [[nodiscard]] Instant due() const { return next_; }
  // When the newest returned number was sent.
  [[nodiscard]] Instant fresh_at() const { return fresh_at_; }
  // How long the newest returned number took, or how long the oldest one is under way. The longer
  // time counts.
  [[nodiscard]] Duration taken(Instant now) const;

  // The most numbers under way. The return of older ones is not noticed.
  static constexpr std::size_t kOpenMax = 128;

 private:
  // A number under way.
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
