// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "router/front/retry/rules.h"

namespace sightline::retry {

// Counts live requests and those of them that were sent again, so that the failure of some workers
// does not become a second load on the others.
// Thread safety: all methods from any thread. Outlives the places it gives.
class Budget {
 public:
  // A request counted in and, at its end, out again.
  class Live {
   public:
    explicit Live(Budget& budget) : count_(budget.live_), number_(++count_) {}
    ~Live() { --count_; }
    Live(const Live&) = delete;
    Live& operator=(const Live&) = delete;
    // Live requests with this one, when it came.
    [[nodiscard]] std::size_t number() const { return number_; }

   private:
    std::atomic<std::size_t>& count_;
    std::size_t number_;
  };

  // A request that was sent again holds its place to its end. Takes one place at most.
  class Place {
   public:
    explicit Place(Budget& budget) : budget_(budget) {}
    ~Place() {
      if (held_) --budget_.retries_;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    // False if there is none free.
    [[nodiscard]] bool take() {
      if (held_) return true;
      std::size_t retries = budget_.retries_.load();
      while (may_retry_beside(retries, budget_.live())) {
        if (budget_.retries_.compare_exchange_weak(retries, retries + 1)) return held_ = true;
      }
      return false;
    }

   private:
    Budget& budget_;
    bool held_ = false;
  };

  [[nodiscard]] std::size_t live() const { return live_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> live_{0};
  std::atomic<std::size_t> retries_{0};
};

}  // namespace sightline::retry
