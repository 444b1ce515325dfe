// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/mutex.h"

namespace sightline::fleet {

// How long a worker takes to compute a prompt token, by its answers. It is the time from the choice
// to the first token, divided by the computed tokens.
// Only answers without another prefill before them may be passed. Of the latest kSamples, the
// fastest tenth counts, because others may have shared their batches. The single fastest one does
// not count: it may have reused more than it reported. Answers with few computed tokens say more
// about other things.
// Thread safety: all methods from any thread.
class PrefillPace {
 public:
  // The least computed tokens of an answer that counts.
  static constexpr std::uint64_t kTokensMin = 256;
  // The answers that count, the latest ones.
  static constexpr std::size_t kSamples = 128;

  // An answer whose first token came after this time. Ignores answers with few tokens.
  void learn(std::uint64_t computed_tokens, double seconds);
  // Nothing: no answer has counted yet.
  [[nodiscard]] std::optional<double> seconds_per_token() const;
  // Returns the seconds that the worker saved by reuse of these tokens. Before the first sample the
  // tokens are kept. The first call after it counts them too.
  double saved(std::uint64_t reused_tokens);

 private:
  // The pace at the border of the fastest tenth.
  [[nodiscard]] double fast_tenth() const SL_REQUIRES(mutex_);

  // Held for memory work only.
  mutable Mutex mutex_;
  std::array<double, kSamples> samples_ SL_GUARDED_BY(mutex_){};
  std::size_t learnt_ SL_GUARDED_BY(mutex_) = 0;  // samples since construction
  double seconds_per_token_ SL_GUARDED_BY(mutex_) = 0;
  std::uint64_t uncounted_tokens_ SL_GUARDED_BY(mutex_) = 0;
};

}  // namespace sightline::fleet
