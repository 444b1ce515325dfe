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
  // weight: the estimated cost, in units of 16 ns. left: stops when no caller waits for the result
  // any more.
  Step(std::size_t weight, std::stop_token left) : weight_(weight), left_(std::move(left)) {}
  virtual ~Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Does the work. Called once.
  virtual void run() = 0;

 protected:
  [[nodiscard]] bool is_left() const { return left_.stop_requested(); }

 private:
  friend class StepOrder;
  const std::size_t weight_;
  const std::stop_token left_;
  // Its index among StepOrder's sizes.
  std::size_t size_ = 0;
  std::list<std::unique_ptr<Step>>::iterator place_{};
  bool is_waiting_ = false;
};

// Decides which step runs next on a compute thread. Steps have four sizes, by their weight. Of the
// sizes that have waiting steps, the one whose steps have run for the least time is next. So each
// size gets an equal share of the threads. A small step waits for steps of its own size and for one
// that runs, never for all large steps. The large steps also progress beside any number of small
// ones. Steps of a size run in the order in which they came. This is fair between connections,
// because each connection has one step at a time.
//
// A weight is an estimate, and a text can be crafted to cost more. The shares therefore count the
// time that steps really took. One thread of several only runs small steps.
//
// Steps whose callers have left run first: they only free memory.
// Thread safety: the caller's mutex guards it.
class StepOrder {
 public:
  // Steps up to this weight are small: prompts of 256 KB, at twenty units a byte.
  static constexpr std::size_t kSmallWeightMax = 5U << 20U;

  // threads: the number of compute threads.
  explicit StepOrder(std::size_t threads) : threads_(threads) {}

  // Adds a step to the last place of its size.
  void add(std::unique_ptr<Step> step);
  // Records that no caller waits for the step's result. Has no effect on a step that runs, or that
  // add() has not received yet.
  void leave(Step& step);
  // The step that a free thread runs next. Null if no step waits, or if no waiting step may run
  // beside the running ones. The caller runs the step and then calls ended().
  [[nodiscard]] std::unique_ptr<Step> next();
  // The step has run, for the time `used`.
  void ended(const Step& step, Duration used);

  // The steps that wait, of all sizes.
  [[nodiscard]] std::size_t waiting() const;

 private:
  using Steps = std::list<std::unique_ptr<Step>>;
  // Up to kSmallWeightMax, up to 4 times and 16 times that, and larger.
  static constexpr std::size_t kSizes = 4;
  // The index of steps whose callers have left.
  static constexpr std::size_t kLeft = kSizes;

  static std::size_t size_of(std::size_t weight);
  [[nodiscard]] bool is_busy(std::size_t size) const;
  void enter(std::size_t size);
  [[nodiscard]] std::size_t next_size() const;
  void put(std::unique_ptr<Step> step, std::size_t size);

  const std::size_t threads_;
  std::array<Steps, kSizes + 1> waiting_;
  // The time that the steps of each size used, since the last moment at which the size was idle. An
  // idle size gets no credit for its idle time.
  std::array<Duration, kSizes> used_{};
  std::array<std::size_t, kSizes> running_{};
};

}  // namespace sightline
