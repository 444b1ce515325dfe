// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/clock.h"
#include "common/base/rng.h"

namespace sightline::pace {

// How the waits grow.
struct BackoffOptions {
  Duration first{};
  double factor = 2;
  Duration max{};
  // Each wait is longer by a random factor, up to 1 + jitter.
  double jitter = 0;
  // After this time without a wait, the next is the first again. 0: never.
  Duration reset_after{};
};

// Waits that grow with each failure. Pure.
// Thread safety: one thread at a time.
class Backoff {
 public:
  explicit Backoff(const BackoffOptions& options) : options_(options), wait_(options.first) {}

  // The next wait.
  Duration next(Instant now, Rng& rng);

 private:
  const BackoffOptions options_;
  Duration wait_;
  Instant asked_at_{};
};

// The wait, longer by a random factor of up to 1 + jitter.
[[nodiscard]] Duration jittered(Duration wait, double jitter, Rng& rng);

}  // namespace sightline::pace
