// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/prefill_pace.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace sightline::fleet {

void PrefillPace::learn(std::uint64_t computed_tokens, double seconds) {
  // Clocks and counts come from outside, so impossible ones are ignored.
  if (computed_tokens < kTokensMin || !std::isfinite(seconds) || seconds <= 0) return;
  const MutexLock lock(mutex_);
  // The oldest sample is replaced.
  samples_.at(learnt_++ % kSamples) = seconds / static_cast<double>(computed_tokens);
  seconds_per_token_ = fast_tenth();
}

double PrefillPace::fast_tenth() const {
  std::vector<double> sorted(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(
                                                                      std::min(learnt_, kSamples)));
  const auto tenth = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 10);
  std::nth_element(sorted.begin(), tenth, sorted.end());
  return *tenth;
}

std::optional<double> PrefillPace::seconds_per_token() const {
  const MutexLock lock(mutex_);
  if (learnt_ == 0) return std::nullopt;
  return seconds_per_token_;
}

double PrefillPace::saved(std::uint64_t reused_tokens) {
  const MutexLock lock(mutex_);
  uncounted_tokens_ += reused_tokens;
  if (learnt_ == 0) return 0;
  return static_cast<double>(std::exchange(uncounted_tokens_, 0)) * seconds_per_token_;
}

}  // namespace sightline::fleet
