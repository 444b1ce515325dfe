// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/queue/rate_limiter.h"

#include <algorithm>

namespace sightline::queue {

Duration RateLimiter::next_wait(const object::Key& item, Instant now) {
  const std::size_t before = failures_[item]++;
  Duration wait = limits_.item_first;
  for (std::size_t i = 0; i < before && wait < limits_.item_max; ++i) wait *= 2;
  return std::max(std::min(wait, limits_.item_max), overall_.take(now));
}

std::size_t RateLimiter::failures(const object::Key& item) const {
  const auto found = failures_.find(item);
  return found == failures_.end() ? 0 : found->second;
}

}  // namespace sightline::queue
