// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <stop_token>

#include "common/base/clock.h"

namespace sightline {

// A step of a request that waits for a compute thread.
class Step {
 public:
  // weight: what it costs at a guess, in units of 16 ns. left: stopped when nobody waits
  // for its result any more.
  Step(std::size_t weight, std::stop_token left) : weight_(weight), left_(std::move(left)) {}
  virtual ~Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Once.
  virtual void run() = 0;

 protected:
  [[nodiscard]] bool is_left() const { return left_.stop_requested(); }

 private:
  friend class StepOrder;
  const std::size_t weight_;
  const std::stop_token left_;
  std::size_t size_ = 0;  // which of StepOrder's sizes it is of
  std::list<std::unique_ptr<Step>>::iterator place_{};
  bool is_waiting_ = false;
};

// Which step runs next on a compute thread. Steps are of four sizes by their weight. Of the sizes
// of which steps wait, the one whose steps have run for the least time is next, so each size has an
// equal share of the threads: a small step waits for steps of its own size and for one that runs,
// never for all the large ones, and the large ones go on beside any number of small ones. Steps
// of a size go in the order they came, which is fair between connections: each of them has one
// step at a time.
//
// The weight is a guess, which text can be made to exceed, but shares are counted in time that was
// used. One thread of several is kept for small steps.
// Steps whose result nobody waits for any more go first: they do nothing but give memory back.
// Thread safety: none.
class StepOrder {
 public:
  // Steps up to this weight are small: prompts of 256 KB, at twenty units a byte.
  static constexpr std::size_t kSmallWeightMax = 5U << 20U;

  explicit StepOrder(std::size_t threads) : threads_(threads) {}

  void add(std::unique_ptr<Step> step);
  // Nobody waits for the step's result any more. One that does not wait here any more, or not yet,
  // is left alone.
  void leave(Step& step);
  // The step that a free thread is to run; none waits, or none that may run beside those that do:
  // null. Follow it by ended().
  [[nodiscard]] std::unique_ptr<Step> next();
  // The step has run, for this long.
  void ended(const Step& step, Duration used);

  [[nodiscard]] std::size_t waiting() const;

 private:
  using Steps = std::list<std::unique_ptr<Step>>;
  // Up to kSmallWeightMax, four times and 16 times that, and larger.
  static constexpr std::size_t kSizes = 4;
  // That of steps that somebody waits for no more.
  static constexpr std::size_t kLeft = kSizes;

  static std::size_t size_of(std::size_t weight);
  [[nodiscard]] bool is_busy(std::size_t size) const;
  void enter(std::size_t size);
  [[nodiscard]] std::size_t next_size() const;
  void put(std::unique_ptr<Step> step, std::size_t size);

  const std::size_t threads_;
  std::array<Steps, kSizes + 1> waiting_;
  // Time used by the steps of a size since there was none of any. A size that had none for a while
  // gets no credit for it.
  std::array<Duration, kSizes> used_{};
  std::array<std::size_t, kSizes> running_{};
};

}  // namespace sightline
