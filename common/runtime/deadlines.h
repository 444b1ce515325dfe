// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <asio/basic_waitable_timer.hpp>
#include <asio/io_context.hpp>

#include "common/base/clock.h"
#include "common/runtime/task.h"

namespace sightline {

class Deadline;

// Many deadlines of one I/O thread on a single timer. To set a deadline is mostly one store: the
// timer moves only if the new deadline is earlier than the time it waits for.
// Thread safety: one I/O thread, which owns it.
class Deadlines {
 public:
  // The shortest time between two wake-ups, and so the most that a callback is late.
  static constexpr std::chrono::milliseconds kTick{20};

  explicit Deadlines(asio::io_context& context) : timer_(std::in_place, context) {}

  // Destroys the timer, which must not outlive its context. No deadline calls back after this.
  void stop() { timer_.reset(); }

  // The timer calls scan(). scan() calls each passed deadline and sets the timer for the next one.
 private:
  friend class Deadline;
  using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                           asio::wait_traits<std::chrono::steady_clock>, Executor>;
  void arm(Instant at);
  void scan();

  std::optional<Timer> timer_;
  std::vector<Deadline*> members_;
  // scan() has checked the members before this one.
  std::size_t scanned_ = 0;
  // An unchecked member moved before scanned_.
  bool moved_back_ = false;
  // The time for which the timer is set.
  Instant armed_at_ = Instant::max();
};

// One deadline. It calls on_passed at most kTick late, once for each set(). on_passed may destroy
// this deadline. The Deadlines object must outlive it.
class Deadline {
 public:
  Deadline(Deadlines& owner, std::function<void()> on_passed);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // Replaces the deadline by the present time plus from_now.
  void set(Duration from_now);
  void clear() { at_ = Instant::max(); }
  [[nodiscard]] bool is_set() const { return at_ != Instant::max(); }

 private:
  friend class Deadlines;
  Deadlines& owner_;
  std::function<void()> on_passed_;
  Instant at_ = Instant::max();
  // This deadline's index in the owner's members.
  std::size_t slot_;
};

}  // namespace sightline
