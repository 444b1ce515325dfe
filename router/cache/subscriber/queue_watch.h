// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <chrono>
#include <optional>

#include "common/base/clock.h"

namespace sightline::subscriber {

// A queue may look empty while more lies in the network's buffers, as after the queue was full. It
// is taken for empty where nothing came for so long, or where what came last was made that lately.
inline constexpr std::chrono::milliseconds kStillFor{100};
// The least lag of a rank is that of its last two spans of this length: its clock may drift, or
// be set.
inline constexpr std::chrono::minutes kLagSpan{1};

// Tells from what is read of a rank's events when all of them were known to be read. A rank
// that pauses shows it by its pauses. One that announces without a pause shows it by the lag of its
// messages: this is the difference of two clocks, of which the least that came lately is taken for
// the one of a message that did not wait.
// Thread safety: none.
class QueueWatch {
 public:
  using Lag = std::chrono::duration<double>;

  // A message was read and applied. lag: the reader's wall clock less the message's own time.
  void read(Instant now, Lag lag);
  // There was no further one.
  void found_empty(Instant now);
  // Messages are missing, or nothing is heard: what was seen of the queue says nothing.
  void reset();

  // Everything announced before this moment, as far as it had reached the network, has been read.
  [[nodiscard]] std::optional<Instant> empty_at() const { return empty_at_; }

 private:
  [[nodiscard]] Lag least_lag(Instant now, Lag lag);

  std::optional<Instant> empty_at_;
  std::optional<Instant> still_since_;    // found empty then, and nothing came since
  std::optional<Instant> fresh_read_at_;  // of the last message, if it did not wait
  std::array<Lag, 2> least_{};            // of the span before and of this one
  std::optional<Instant> span_began_;
};

}  // namespace sightline::subscriber
