// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "router/front/retry/rules.h"

namespace sightline::retry {

// Counts live requests, and the ones of them that were sent again. It limits the retries. The
// failure of some workers must not give the others twice the load.
//
// Thread safety: any thread may call any method. The budget must live longer than its Live and
// Place objects.
class RetryBudget {
 public:
  // Counts one request, from its construction to its destruction.
  class Live {
   public:
    explicit Live(RetryBudget& budget) : count_(budget.live_), number_(++count_) {}
    ~Live() { --count_; }
    Live(const Live&) = delete;
    Live& operator=(const Live&) = delete;
    // The number of live requests when this one came, with this one.
    [[nodiscard]] std::size_t number() const { return number_; }

   private:
    std::atomic<std::size_t>& count_;
    std::size_t number_;
  };

  // The retry of one request. It takes at most one place in the budget and returns it at the end of
  // the request.
  class BudgetSlot {
   public:
    explicit BudgetSlot(RetryBudget& budget) : budget_(budget) {}
    ~BudgetSlot() {
      if (held_) --budget_.retries_;
    }
    BudgetSlot(const BudgetSlot&) = delete;
    BudgetSlot& operator=(const BudgetSlot&) = delete;
    // Takes a place. Returns false if no place is free. A second call has no effect.
    [[nodiscard]] bool take() {
      if (held_) return true;
      std::size_t retries = budget_.retries_.load();
      while (may_retry_beside(retries, budget_.live())) {
        if (budget_.retries_.compare_exchange_weak(retries, retries + 1)) return held_ = true;
      }
      return false;
    }

   private:
    RetryBudget& budget_;
    bool held_ = false;
  };

  // The number of live requests.
  [[nodiscard]] std::size_t live() const { return live_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> live_{0};
  std::atomic<std::size_t> retries_{0};
};

}  // namespace sightline::retry
