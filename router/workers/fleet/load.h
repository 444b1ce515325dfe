// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/result.h"

namespace sightline::fleet {

// Work that one request brings to a worker: what of its prompt is not expected in the cache.
// Blocks that are reused cost neither computing nor memory, and requests that share them would
// else count them many times.
struct Booking {
  std::uint64_t prefill_tokens = 0;  // weigh until the first token
  std::uint64_t blocks = 0;          // the same in KV blocks: weigh from the first token on
  std::uint32_t block_size = 1;      // tokens
};

// Work booked on a worker at one moment.
struct Load {
  std::uint32_t in_flight = 0;       // requests
  std::uint64_t prefill_tokens = 0;  // of requests without a first token yet
  std::uint64_t blocks = 0;          // of requests that decode
  double recent_prefill_blocks = 0;  // computed lately, halved every kRecentHalfLife
};

inline constexpr Duration kRecentHalfLife = std::chrono::seconds(30);

class Reservation;

// The booked work of one worker, shared by all snapshots of it.
// Thread safety: all methods from any thread.
class LoadCell : public std::enable_shared_from_this<LoadCell> {
 public:
  [[nodiscard]] Load read(Instant now) const;

  // Books a request. The booking ends with the reservation, on whatever way.
  [[nodiscard]] Reservation reserve(const Booking& booking, Instant now);

 private:
  friend class Reservation;
  void begin_decoding(const Booking& booking);
  void end(const Booking& booking, bool decoding);
  [[nodiscard]] double recent_at(Instant now) const SL_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Load load_ SL_GUARDED_BY(mutex_);
  Instant recent_since_ SL_GUARDED_BY(mutex_){};
};

// A request's booked work: released exactly once, at the latest when this is destroyed.
// Thread safety: none; one owner.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { release(); }

  // The first token has come: the prefill is done, decoding begins. An answer that comes as a
  // whole has no such moment; its prefill weighs to the end.
  void first_token();
  void release();

 private:
  friend class LoadCell;
  Reservation(std::shared_ptr<LoadCell> cell, const Booking& booking)
      : cell_(std::move(cell)), booking_(booking) {}

  std::shared_ptr<LoadCell> cell_;
  Booking booking_;
  bool decoding_ = false;
};

}  // namespace sightline::fleet
