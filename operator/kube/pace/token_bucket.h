// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/clock.h"

namespace sightline::pace {

// So many at once, and so many a second after that. Whoever comes too early takes a place in the
// future and is told how long to wait for it. Pure; thread safety: none.
class TokenBucket {
 public:
  // per_second > 0, burst >= 1.
  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst) {}

  // Takes one; the time until it is there.
  Duration take(Instant now);

 private:
  const double per_second_;
  const double burst_;
  double owed_ = 0;  // tokens taken of those that have grown back by at_; up to burst_ are there
  Instant at_{};
};

}  // namespace sightline::pace
