// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "common/base/clock.h"

namespace sightline::fleet {

// Work that one request brings to a worker.
struct Booking {
  std::uint64_t prefill_tokens = 0;  // prompt tokens that are not expected in the cache
  std::uint64_t blocks = 0;          // KV blocks held while decoding
  // The blocks weigh from the booking on: the first token of this request will not be seen. Else
  // they weigh from the first token on, while before it the prefill does.
  bool decodes_at_once = false;
  std::uint32_t block_size = 1;  // tokens
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
  void end_prefill(const Booking& booking, bool decodes);
  void end(const Booking& booking, bool decoded);
  [[nodiscard]] double recent_at(Instant now) const;

  mutable std::mutex mutex_;  // guards everything below
  Load load_;
  Instant recent_since_{};
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

  // The first token has come: the prefill is done, decoding begins.
  void first_token();
  void release();

 private:
  friend class LoadCell;
  Reservation(std::shared_ptr<LoadCell> cell, const Booking& booking)
      : cell_(std::move(cell)),
        booking_(booking),
        prefilling_(true),
        decoding_(booking.decodes_at_once) {}

  std::shared_ptr<LoadCell> cell_;
  Booking booking_;
  bool prefilling_ = false;
  bool decoding_ = false;  // its blocks are counted
};

}  // namespace sightline::fleet
