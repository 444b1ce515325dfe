// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/mutex.h"

namespace sightline::fleet {

// How long a worker takes for a prompt token that it has to compute, learnt from its answers: the
// time from the choice to the first token over the tokens computed, of the fastest tenth of the
// latest kSamples. To be told of answers alone that had no other prefill before them. The fastest,
// since later ones may have shared their batches; not the single fastest, which may have reused
// more than it told. Answers that computed few tokens tell more of other things.
// Thread safety: all methods from any thread.
class PrefillPace {
 public:
  static constexpr std::uint64_t kTokensMin = 256;
  static constexpr std::size_t kSamples = 128;

  // An answer whose first token came after so long. Nothing is learnt of few tokens.
  void learn(std::uint64_t computed_tokens, double seconds);
  // Nothing: none was learnt yet.
  [[nodiscard]] std::optional<double> seconds_per_token() const;
  // Seconds that reused tokens spared the worker. Before anything is learnt they are kept, and
  // counted with the first that come after.
  double saved(std::uint64_t reused_tokens);

 private:
  [[nodiscard]] double fast_tenth() const SL_REQUIRES(mutex_);

  mutable Mutex mutex_;  // held for memory work only
  std::array<double, kSamples> samples_ SL_GUARDED_BY(mutex_){};
  std::size_t learnt_ SL_GUARDED_BY(mutex_) = 0;  // ever
  double seconds_per_token_ SL_GUARDED_BY(mutex_) = 0;
  std::uint64_t uncounted_tokens_ SL_GUARDED_BY(mutex_) = 0;
};

}  // namespace sightline::fleet
