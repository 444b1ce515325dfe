// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace sightline::quality {

// Simulated time with its planned actions. Actions of one instant run in the order in which they
// were planned. So equal runs give equal results.
// Thread safety: one thread at a time.
class Timeline {
 public:
  using Action = std::function<void()>;

  [[nodiscard]] Instant now() const { return now_; }
  void at(Instant when, Action action) { plans_.push({when, next_++, std::move(action)}); }
  void after(Duration delay, Action action) { at(now_ + delay, std::move(action)); }

  // Runs until no action is planned.
  void run() {
    while (!plans_.empty()) {
      Plan plan = plans_.top();
      plans_.pop();
      now_ = plan.when;
      plan.action();
    }
  }

 private:
  struct Plan {
    Instant when{};
    std::uint64_t number = 0;
    Action action;

    bool operator<(const Plan& other) const {  // the queue has the greatest on top
      return std::pair(when, number) > std::pair(other.when, other.number);
    }
  };

  Instant now_{};
  std::uint64_t next_ = 0;
  std::priority_queue<Plan> plans_;
};

}  // namespace sightline::quality
