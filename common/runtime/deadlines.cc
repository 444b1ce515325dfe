// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/deadlines.h"

#include <algorithm>

namespace sightline {

void Deadlines::arm(Instant at) {
  // stop() has destroyed the timer.
  if (!timer_) return;
  armed_at_ = at;
  // Setting a new expiry cancels the previous wait.
  timer_->expires_at(std::chrono::time_point_cast<Timer::duration>(at));
  timer_->async_wait([this](const asio::error_code& error) {
    // An error means that the wait was cancelled.
    if (!error) scan();
  });
}

void Deadlines::scan() {
  armed_at_ = Instant::max();
  const auto now = system_clock().now();
  auto earliest = Instant::max();
  // Passed deadlines are reset before their callback, so the loop ends. A repetition is needed only
  // after a callback removed deadlines.
  do {
    moved_back_ = false;
    for (scanned_ = 0; scanned_ < members_.size();) {
      Deadline& member = *members_[scanned_];
      if (member.at_ > now) {
        earliest = std::min(earliest, member.at_);
        ++scanned_;
        continue;
      }
      member.at_ = Instant::max();
      // A copy, because the callback may destroy its own deadline. It may also remove or add
      // others, which reorders members_.
      const auto on_passed = member.on_passed_;
      on_passed();
    }
  } while (moved_back_);
  scanned_ = 0;
  // A callback may have set the timer already. kTick limits how often this thread wakes.
  if (earliest < armed_at_) arm(std::max(earliest, now + kTick));
}

Deadline::Deadline(Deadlines& owner, std::function<void()> on_passed)
    : owner_(owner), on_passed_(std::move(on_passed)), slot_(owner.members_.size()) {
  owner.members_.push_back(this);
}

Deadline::~Deadline() {
  auto& members = owner_.members_;
  // The last member moves into this slot, which the scan has passed, so the scan must repeat.
  if (slot_ < owner_.scanned_) owner_.moved_back_ = true;
  // Removes in constant time, because requests create and destroy deadlines all the time.
  members[slot_] = members.back();
  members[slot_]->slot_ = slot_;
  members.pop_back();
}

void Deadline::set(Duration from_now) {
  at_ = system_clock().now() + from_now;
  // A later deadline needs no change: the timer fires first and scan() sets it again.
  if (at_ < owner_.armed_at_) owner_.arm(at_);
}

}  // namespace sightline
