// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/rng.h"

namespace sightline::follower {

// When to send a request, and when to repeat it: after `min`, twice that, and so on up to `max`.
// Each pause is up to half longer by chance.
// Thread safety: one thread at a time.
class Retry {
 public:
  // Nothing is due before start().
  Retry(Duration min, Duration max) : min_(min), max_(max), delay_(min) {}

  // The request is due from `at` on, but not before the pause after the last request is over. Does
  // nothing if a request is due already.
  void start(Instant at) {
    if (!is_on()) due_ = std::max(at, not_before_);
  }
  // Nothing is left to request. The pause stays, for requests that would otherwise follow each
  // other without a pause.
  void stop() {
    due_ = Instant::max();
    was_asked_ = false;
  }
  // The last request succeeded: the next one needs no pause.
  void reset() {
    not_before_ = {};
    delay_ = min_;
  }
  // The request was sent. The next pause begins.
  void asked(Instant now, Rng& rng) {
    not_before_ =
        now + delay_ +
        Duration(static_cast<Duration::rep>(rng.unit() / 2 * static_cast<double>(delay_.count())));
    if (is_on()) due_ = not_before_;
    was_asked_ = true;
    delay_ = std::min(2 * delay_, max_);
  }

  // Whether it was requested since the last stop().
  [[nodiscard]] bool was_asked() const { return was_asked_; }
  // Whether a request is or will become due.
  [[nodiscard]] bool is_on() const { return due_ != Instant::max(); }
  [[nodiscard]] Instant due() const { return due_; }  // Instant::max(): never
  // Whether the pause after the last request is over.
  [[nodiscard]] bool may_ask(Instant now) const { return now >= not_before_; }

 private:
  Duration min_;
  Duration max_;
  // The pause after the next request, before its random part.
  Duration delay_;
  Instant due_ = Instant::max();
  // The end of the pause after the last request.
  Instant not_before_{};
  bool was_asked_ = false;
};

}  // namespace sightline::follower
