// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/pace/token_bucket.h"

#include <algorithm>
#include <chrono>

namespace sightline::pace {

Duration TokenBucket::take(Instant now) {
  const std::chrono::duration<double> passed = now - at_;
  owed_ = std::max(0.0, owed_ - passed.count() * per_second_) + 1;
  at_ = now;
  const double late = std::max(0.0, owed_ - burst_) / per_second_;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(late));
}

}  // namespace sightline::pace
