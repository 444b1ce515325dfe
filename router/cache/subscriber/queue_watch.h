// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <chrono>
#include <optional>

#include "common/base/clock.h"

namespace sightline::subscriber {

// A queue may look empty while more is in the network's buffers, for example after the queue was
// full. It counts as empty in two cases: no message came for so long, or the last message was made
// so recently.
inline constexpr std::chrono::milliseconds kStillFor{100};
// The least lag of a rank is the least of its last two spans of this length. Its clock may drift,
// or be set.
inline constexpr std::chrono::minutes kLagSpan{1};

// Finds the last moment when all of a rank's events were known to be read. A rank that pauses shows
// it by its pauses. A rank that publishes without a pause shows it by the lag of its messages. The
// lag is a difference of two clocks. The least recent lag counts as the lag of a message that did
// not wait.
// Thread safety: one thread at a time.
class QueueWatch {
 public:
  using Lag = std::chrono::duration<double>;

  // A message was read and applied. lag: the reader's wall clock minus the message's own time.
  void read(Instant now, Lag lag);
  // The queue had no further message.
  void found_empty(Instant now);
  // Messages are missing, or no messages arrive. Earlier observations of the queue prove nothing.
  void reset();

  // Returns a moment before which all events that had reached the network have been read. Empty if
  // no moment is known.
  [[nodiscard]] std::optional<Instant> empty_at() const { return empty_at_; }

 private:
  [[nodiscard]] Lag least_lag(Instant now, Lag lag);

  std::optional<Instant> empty_at_;
  std::optional<Instant> still_since_;    // it was found empty then, and no message came since.
  std::optional<Instant> fresh_read_at_;  // the last message was read then and did not wait.
  std::array<Lag, 2> least_{};            // of the previous span and of this one.
  std::optional<Instant> span_began_;
};

}  // namespace sightline::subscriber
