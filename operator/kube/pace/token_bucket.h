// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/clock.h"

namespace sightline::pace {

// Allows `burst` actions immediately, and then per_second more each second. An early caller
// reserves a place in the future and learns how long to wait for it. Pure.
// Thread safety: one thread at a time.
class TokenBucket {
 public:
  // per_second > 0, burst >= 1.
  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst) {}

  // Takes one token. Returns the time until it exists.
  Duration take(Instant now);

 private:
  const double per_second_;
  const double burst_;
  // Tokens taken and not regrown by at_. Up to burst_ of them exist.
  double owed_ = 0;
  Instant at_{};
};

}  // namespace sightline::pace
