// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/clock.h"
#include "common/base/rng.h"

namespace sightline::pace {

struct BackoffOptions {
  Duration first{};
  double factor = 2;
  Duration max{};
  double jitter = 0;       // each wait is up to so many times longer
  Duration reset_after{};  // without a wait asked for, the next is the first again; 0: never
};

// Waits that grow with every failure. Pure; thread safety: none.
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

// wait, up to `jitter` times longer.
[[nodiscard]] Duration jittered(Duration wait, double jitter, Rng& rng);

}  // namespace sightline::pace
