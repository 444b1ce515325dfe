// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/pace/backoff.h"

#include <algorithm>
#include <chrono>

namespace sightline::pace {
namespace {

Duration scaled(Duration wait, double factor) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::nano>(static_cast<double>(wait.count()) * factor));
}

}  // namespace

Duration jittered(Duration wait, double jitter, Rng& rng) {
  return scaled(wait, 1 + jitter * rng.unit());
}

Duration Backoff::next(Instant now, Rng& rng) {
  if (options_.reset_after > Duration::zero() && now - asked_at_ > options_.reset_after) {
    wait_ = options_.first;
  }
  asked_at_ = now;
  const Duration wait = wait_;
  wait_ = std::min(scaled(wait_, options_.factor), options_.max);
  return jittered(wait, options_.jitter, rng);
}

}  // namespace sightline::pace
