// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/load.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"

namespace sightline::fleet {
double LoadCell::recent_at(Instant now) const {
  if (now <= recent_since_) return load_.recent_prefill_blocks;
  const double half_lives = std::chrono::duration<double>(now - recent_since_) /
                            std::chrono::duration<double>(kRecentHalfLife);
  return load_.recent_prefill_blocks * std::exp2(-half_lives);
}

Load LoadCell::read(Instant now) const {
  const MutexLock lock(mutex_);
  Load load = load_;
  load.recent_prefill_blocks = recent_at(now);
  return load;
}

Reservation LoadCell::reserve(const Booking& booking, Instant now) {
  {
    const MutexLock lock(mutex_);
    ++load_.in_flight;
    load_.prefill_tokens += booking.prefill_tokens;
    load_.recent_prefill_blocks =
        recent_at(now) + static_cast<double>(booking.prefill_tokens) / booking.block_size;
    recent_since_ = now;
  }
  return {shared_from_this(), booking};
}

void LoadCell::begin_decoding(const Booking& booking) {
  const MutexLock lock(mutex_);
  SL_CHECK(load_.prefill_tokens >= booking.prefill_tokens);
  load_.prefill_tokens -= booking.prefill_tokens;
  load_.blocks += booking.blocks;
}

void LoadCell::end(const Booking& booking, bool decoding) {
  const MutexLock lock(mutex_);
  SL_CHECK(load_.in_flight > 0);
  --load_.in_flight;
  if (decoding) {
    SL_CHECK(load_.blocks >= booking.blocks);
    load_.blocks -= booking.blocks;
  } else {
    SL_CHECK(load_.prefill_tokens >= booking.prefill_tokens);
    load_.prefill_tokens -= booking.prefill_tokens;
  }
}

Reservation::Reservation(Reservation&& other) noexcept
    : cell_(std::exchange(other.cell_, nullptr)),
      booking_(other.booking_),
      decoding_(other.decoding_) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  release();
  cell_ = std::exchange(other.cell_, nullptr);
  booking_ = other.booking_;
  decoding_ = other.decoding_;
  return *this;
}

void Reservation::first_token() {
  if (!cell_ || decoding_) return;
  decoding_ = true;
  cell_->begin_decoding(booking_);
}

void Reservation::release() {
  if (!cell_) return;
  cell_->end(booking_, decoding_);
  cell_ = nullptr;
}

}  // namespace sightline::fleet
