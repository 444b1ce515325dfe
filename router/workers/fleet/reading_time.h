// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <optional>

#include "common/base/clock.h"

namespace sightline::fleet {

// When a worker's queue and KV use were read last.
// Thread safety: all methods from any thread.
class ReadingTime {
 public:
  void set(Instant now) { at_.store(now, std::memory_order_relaxed); }
  // Nothing: never.
  [[nodiscard]] std::optional<Instant> at() const {
    const Instant at = at_.load(std::memory_order_relaxed);
    return at == Instant{} ? std::nullopt : std::optional(at);
  }

 private:
  std::atomic<Instant> at_ = Instant{};
};

}  // namespace sightline::fleet
