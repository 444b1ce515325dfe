// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/step_order.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sightline {

std::size_t StepOrder::size_of(std::size_t weight) {
  std::size_t size = 0;
  for (std::size_t max = kSmallWeightMax; size + 1 < kSizes && weight > max; max *= 4) ++size;
  return size;
}

void StepOrder::put(std::unique_ptr<Step> step, std::size_t size) {
  Step& placed = *step;
  placed.size_ = size;
  placed.is_waiting_ = true;
  placed.place_ = waiting_[size].insert(waiting_[size].end(), std::move(step));
}

void StepOrder::add(std::unique_ptr<Step> step) {
  // The client may have left before the step came here.
  if (step->is_left()) return put(std::move(step), kLeft);
  const std::size_t size = size_of(step->weight_);
  if (!is_busy(size)) enter(size);
  put(std::move(step), size);
}

bool StepOrder::is_busy(std::size_t size) const {
  return !waiting_[size].empty() || running_[size] > 0;
}

// A size that becomes busy starts with the least used time of the busy sizes. With less it would
// catch up for its idle time and delay all others. If all were idle, all start from 0.
void StepOrder::enter(std::size_t size) {
  Duration least = Duration::max();
  for (std::size_t other = 0; other < kSizes; ++other) {
    if (is_busy(other)) least = std::min(least, used_[other]);
  }
  if (least == Duration::max()) return used_.fill({});
  used_[size] = std::max(used_[size], least);
}

void StepOrder::leave(Step& step) {
  // next() has handed it out, or it was moved before.
  if (!step.is_waiting_ || step.size_ == kLeft) return;
  Steps& left = waiting_[kLeft];
  left.splice(left.end(), waiting_[step.size_], step.place_);
  step.size_ = kLeft;
}

std::size_t StepOrder::next_size() const {
  // Cheap, and they free memory.
  if (!waiting_[kLeft].empty()) return kLeft;
  const std::size_t large = std::accumulate(running_.begin() + 1, running_.end(), std::size_t{0});
  // Large steps may take all threads but one.
  const bool small_only = threads_ > 1 && large + 1 >= threads_;
  std::size_t best = kSizes + 1;
  for (std::size_t size = 0; size < (small_only ? 1 : kSizes); ++size) {
    if (waiting_[size].empty()) continue;
    if (best > kSizes || used_[size] < used_[best]) best = size;
  }
  return best;
}

std::unique_ptr<Step> StepOrder::next() {
  const std::size_t size = next_size();
  if (size > kLeft) return nullptr;
  std::unique_ptr<Step> step = std::move(waiting_[size].front());
  waiting_[size].pop_front();
  step->is_waiting_ = false;
  // Left steps do no work, so they take no share.
  if (size < kSizes) ++running_[size];
  return step;
}

void StepOrder::ended(const Step& step, Duration used) {
  if (step.size_ == kLeft) return;
  --running_[step.size_];
  used_[step.size_] += used;
}

std::size_t StepOrder::waiting() const {
  return std::accumulate(waiting_.begin(), waiting_.end(), std::size_t{0},
                         [](std::size_t sum, const Steps& steps) { return sum + steps.size(); });
}

}  // namespace sightline
