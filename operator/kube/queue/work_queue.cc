// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/queue/work_queue.h"

#include <algorithm>

namespace sightline::queue {

void WorkQueue::add(const object::Key& item, Instant now) {
  // An item that needs work already is not queued twice. Its waiting time counts from the first
  // call.
  if (!dirty_.emplace(item, now).second) return;
  ++added_total_;
  // An item under work comes back in done().
  if (!processing_.contains(item)) order_.push_back(item);
}

void WorkQueue::add_at(const object::Key& item, Instant now, Instant ready_at) {
  if (ready_at <= now) return add(item, now);
  const auto [place, is_new] = ready_at_.emplace(item, ready_at);
  if (!is_new) {
    if (place->second <= ready_at) return;
    by_time_.erase({place->second, item});
    place->second = ready_at;
  }
  by_time_.emplace(ready_at, item);
}

void WorkQueue::add_rate_limited(const object::Key& item, Instant now, Duration at_least) {
  add_at(item, now, now + std::max(limiter_.next_wait(item, now), at_least));
}

void WorkQueue::add_changed(const object::Key& item, Instant now) {
  // The change may be the work's own, for example a write. done() decides when the work's result is
  // known.
  if (processing_.contains(item)) {
    changed_.insert(item);
  } else {
    add_at(item, now, limiter_.changed(item, now));
  }
}

void WorkQueue::move_ready(Instant now) {
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const object::Key item = by_time_.begin()->second;
    by_time_.erase(by_time_.begin());
    ready_at_.erase(item);
    add(item, now);
  }
}

std::optional<WorkQueue::WorkItem> WorkQueue::take(Instant now) {
  move_ready(now);
  if (order_.empty()) return std::nullopt;
  WorkItem taken{std::move(order_.front()), {}};
  order_.pop_front();
  const auto dirty = dirty_.find(taken.item);
  taken.waited = now - dirty->second;
  dirty_.erase(dirty);
  processing_.emplace(taken.item, now);
  return taken;
}

std::optional<Duration> WorkQueue::done(const object::Key& item, Instant now) {
  const auto taken = processing_.find(item);
  if (taken == processing_.end()) return std::nullopt;
  const Duration worked = now - taken->second;
  processing_.erase(taken);
  const auto dirty = dirty_.find(item);
  if (dirty != dirty_.end()) {
    // The waiting time counts from here, because it could not be taken before.
    dirty->second = now;
    order_.push_back(item);
  }
  if (changed_.erase(item) > 0) add_changed(item, now);
  return worked;
}

std::optional<Instant> WorkQueue::next_ready() const {
  return by_time_.empty() ? std::nullopt : std::optional(by_time_.begin()->first);
}

WorkQueue::Unfinished WorkQueue::unfinished(Instant now) const {
  Unfinished sum;
  for (const auto& [item, since] : processing_) {
    sum.total += now - since;
    sum.longest = std::max(sum.longest, now - since);
  }
  return sum;
}

}  // namespace sightline::queue
