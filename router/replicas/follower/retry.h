// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/rng.h"

namespace sightline::follower {

// When to ask for something, and when again: after `min`, twice that, up to `max`, each up to half
// longer by chance. Thread safety: none.
class Retry {
 public:
  Retry(Duration min, Duration max) : min_(min), max_(max), delay_(min) {}

  // Asks from `at` on, but not before the pause after the last ask is over. Nothing if it does.
  void start(Instant at) {
    if (!is_on()) due_ = std::max(at, not_before_);
  }
  // Nothing more to ask for. The pause stays, for what is asked for again and again.
  void stop() {
    due_ = Instant::max();
    was_asked_ = false;
  }
  // It went well: the next ask comes without a pause.
  void reset() {
    not_before_ = {};
    delay_ = min_;
  }
  void asked(Instant now, Rng& rng) {
    not_before_ =
        now + delay_ +
        Duration(static_cast<Duration::rep>(rng.unit() / 2 * static_cast<double>(delay_.count())));
    if (is_on()) due_ = not_before_;
    was_asked_ = true;
    delay_ = std::min(2 * delay_, max_);
  }

  // Since it was last stopped.
  [[nodiscard]] bool was_asked() const { return was_asked_; }
  [[nodiscard]] bool is_on() const { return due_ != Instant::max(); }
  [[nodiscard]] Instant due() const { return due_; }  // Instant::max(): never
  [[nodiscard]] bool may_ask(Instant now) const { return now >= not_before_; }

 private:
  Duration min_;
  Duration max_;
  Duration delay_;
  Instant due_ = Instant::max();
  Instant not_before_{};
  bool was_asked_ = false;
};

}  // namespace sightline::follower
