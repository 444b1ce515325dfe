// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/queue_watch.h"

#include <algorithm>

namespace sightline::subscriber {

QueueWatch::Lag QueueWatch::least_lag(Instant now, Lag lag) {
  if (!span_began_ || now - *span_began_ >= 2 * kLagSpan) {
    least_ = {lag, lag};
    span_began_ = now;
  } else if (now - *span_began_ >= kLagSpan) {
    least_ = {least_[1], lag};
    span_began_ = now;
  }
  least_[1] = std::min(least_[1], lag);
  return std::min(least_[0], least_[1]);
}

void QueueWatch::read(Instant now, Lag lag) {
  // A message ends the stillness, even one that waited.
  still_since_.reset();
  fresh_read_at_.reset();
  if (lag - least_lag(now, lag) <= kStillFor) fresh_read_at_ = now;
}

void QueueWatch::found_empty(Instant now) {
  if (!still_since_) still_since_ = now;
  // Without a pause of kStillFor, only a fresh message proves that nothing waited before it.
  if (now - *still_since_ >= kStillFor) {
    empty_at_ = now;
  } else if (fresh_read_at_) {
    empty_at_ = *fresh_read_at_;
  }
}

void QueueWatch::reset() {
  empty_at_.reset();
  still_since_.reset();
  fresh_read_at_.reset();
}

}  // namespace sightline::subscriber
