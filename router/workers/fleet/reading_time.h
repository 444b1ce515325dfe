// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <optional>

#include "common/base/clock.h"

namespace sightline::fleet {

// When a worker's queue and KV use were last read.
// Thread safety: all methods from any thread.
class ReadingTime {
 public:
  // They were read now.
  void set(Instant now) { at_.store(now, std::memory_order_relaxed); }
  // Nothing: they were never read.
  [[nodiscard]] std::optional<Instant> at() const {
    const Instant at = at_.load(std::memory_order_relaxed);
    return at == Instant{} ? std::nullopt : std::optional(at);
  }

 private:
  // Instant{}: never.
  std::atomic<Instant> at_ = Instant{};
};

}  // namespace sightline::fleet
