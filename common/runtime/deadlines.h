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

// Many deadlines of one I/O thread behind a single timer. Setting one is mostly a store: the timer
// moves only when the new deadline is earlier than everything it waits for.
// Thread safety: none; belongs to one I/O thread.
class Deadlines {
 public:
  // Shortest time between two wake-ups: how late a deadline may be called.
  static constexpr std::chrono::milliseconds kTick{20};

  explicit Deadlines(asio::io_context& context) : timer_(std::in_place, context) {}

  // Gives the timer back before its context ends; deadlines are not called any more.
  void stop() { timer_.reset(); }

 private:
  friend class Deadline;
  using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                           asio::wait_traits<std::chrono::steady_clock>, Executor>;
  void arm(Instant at);
  void scan();

  std::optional<Timer> timer_;
  std::vector<Deadline*> members_;
  std::size_t scanned_ = 0;  // members before this one have been looked at
  bool moved_back_ = false;  // one not yet looked at went before it
  Instant armed_at_ = Instant::max();
};

// One deadline: calls back at most kTick late, once per set(). The owner outlives it.
class Deadline {
 public:
  Deadline(Deadlines& owner, std::function<void()> on_passed);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // Replaces the deadline by one this far from now.
  void set(Duration from_now);
  void clear() { at_ = Instant::max(); }
  [[nodiscard]] bool is_set() const { return at_ != Instant::max(); }

 private:
  friend class Deadlines;
  Deadlines& owner_;
  std::function<void()> on_passed_;
  Instant at_ = Instant::max();
  std::size_t slot_;
};

}  // namespace sightline
