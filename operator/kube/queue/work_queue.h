// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/clock.h"

#include "operator/kube/object/resource.h"
#include "operator/kube/queue/rate_limiter.h"

namespace sightline::queue {

// The names of objects that need work. An item added repeatedly before it is taken is taken
// once. While one thread works on an item, no other gets it. If it was added meanwhile, it comes
// back afterwards. The size is limited by the number of distinct names. Pure.
// Thread safety: the caller's mutex guards it.
class WorkQueue {
 public:
  struct WorkItem {
    object::Key item;
    // In the queue.
    Duration waited{};
  };
  // The work under way at one moment.
  struct Unfinished {
    Duration total{};
    Duration longest{};
  };

  explicit WorkQueue(const RateLimits& limits = {}) : limiter_(limits) {}

  // Adds an item that needs work now.
  void add(const object::Key& item, Instant now);
  // Adds an item at a later time. Of several times for one item, the earliest counts.
  void add_at(const object::Key& item, Instant now, Instant ready_at);
  // Adds an item after a failure, at the earliest after `at_least`.
  void add_rate_limited(const object::Key& item, Instant now, Duration at_least = {});
  // The item's object has changed. If the item has failed, it waits at most
  // RateLimits::changed_max. While work on it is under way, the change may be its own, so the end
  // of that work decides, see done().
  void add_changed(const object::Key& item, Instant now);
  // Resets the count of an item's failures.
  void forget(const object::Key& item) { limiter_.forget(item); }

  // The next item, oldest first. The work on it lasts until done().
  std::optional<WorkItem> take(Instant now);
  // Ends the work on an item. Returns how long it took, or nothing if no work was under way.
  std::optional<Duration> done(const object::Key& item, Instant now);

  // When the next item with a time becomes ready.
  [[nodiscard]] std::optional<Instant> next_ready() const;
  // The items that take() would give.
  [[nodiscard]] std::size_t depth() const { return order_.size(); }
  // The items that wait for a time.
  [[nodiscard]] std::size_t waiting() const { return ready_at_.size(); }
  [[nodiscard]] std::size_t failures(const object::Key& item) const {
    return limiter_.failures(item);
  }
  // The work under way now.
  [[nodiscard]] Unfinished unfinished(Instant now) const;
  // All items that came into the queue.
  [[nodiscard]] std::size_t added_total() const { return added_total_; }

 private:
  void move_ready(Instant now);

  RateLimiter limiter_;
  std::deque<object::Key> order_;
  // Needs work, and since when.
  std::map<object::Key, Instant> dirty_;
  // Since when.
  std::map<object::Key, Instant> processing_;
  // Changed while work on them was under way.
  std::set<object::Key> changed_;
  std::map<object::Key, Instant> ready_at_;
  // The same, earliest first.
  std::set<std::pair<Instant, object::Key>> by_time_;
  std::size_t added_total_ = 0;
};

}  // namespace sightline::queue
