// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/queue/rate_limiter.h"

#include <algorithm>

namespace sightline::queue {

Duration RateLimiter::wait_after(std::size_t failures) const {
  Duration wait = limits_.item_first;
  // The loop ends at the limit, so many failures cannot overflow the wait.
  for (std::size_t i = 1; i < failures && wait < limits_.item_max; ++i) wait *= 2;
  return std::min(wait, limits_.item_max);
}

Duration RateLimiter::next_wait(const object::Key& item, Instant now) {
  Failures& failures = failures_[item];
  ++failures.count;
  failures.last = now;
  return std::max(wait_after(failures.count), overall_.take(now));
}

Instant RateLimiter::changed(const object::Key& item, Instant now) {
  const auto found = failures_.find(item);
  if (found == failures_.end()) return now;
  Failures& failures = found->second;
  while (failures.count > 1 && wait_after(failures.count) > limits_.changed_max) --failures.count;
  // From the last failure, not from now: further changes do not postpone the attempt.
  return std::max(now, failures.last + wait_after(failures.count));
}

std::size_t RateLimiter::failures(const object::Key& item) const {
  const auto found = failures_.find(item);
  return found == failures_.end() ? 0 : found->second.count;
}

}  // namespace sightline::queue
