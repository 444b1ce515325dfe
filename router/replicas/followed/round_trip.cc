// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/followed/round_trip.h"

#include <algorithm>

namespace sightline::followed {

std::optional<std::uint64_t> RoundTrip::turn(Instant now) {
  if (now < next_) return std::nullopt;
  next_ = now + every_;
  open_.push_back({.number = draw_(), .at = now});
  if (open_.size() > kOpenMax) open_.pop_front();
  return open_.back().number;
}

void RoundTrip::heard(std::uint64_t number, Instant now) {
  const auto sent = std::find_if(open_.begin(), open_.end(),
                                 [&](const Sent& one) { return one.number == number; });
  if (sent == open_.end()) return;
  fresh_at_ = sent->at;
  taken_ = now - sent->at;
  // Earlier numbers are lost or older than this one.
  open_.erase(open_.begin(), sent + 1);
}

Duration RoundTrip::taken(Instant now) const {
  // Without the open numbers, a NATS that delivers nothing would look as fast as its last delivery.
  return open_.empty() ? taken_ : std::max(taken_, now - open_.front().at);
}

}  // namespace sightline::followed
