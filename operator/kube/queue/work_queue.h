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

// Names of objects to look at. However often one is added before it is taken, it is taken once; one
// that is worked on is not taken by anybody else, and comes back if it was added meanwhile. Holds
// no more than the distinct names that are added. Pure; thread safety: none.
class WorkQueue {
 public:
  struct Taken {
    object::Key item;
    Duration waited{};  // in the queue
  };
  // What is worked on at a moment.
  struct Unfinished {
    Duration total{};
    Duration longest{};
  };

  explicit WorkQueue(const RateLimits& limits = {}) : limiter_(limits) {}

  void add(const object::Key& item, Instant now);
  // Of several such times for one item, the earliest counts.
  void add_at(const object::Key& item, Instant now, Instant ready_at);
  // After a failure; not sooner than after `at_least`.
  void add_rate_limited(const object::Key& item, Instant now, Duration at_least = {});
  // What the item looks at has changed. One that fails waits for RateLimits::changed_max at most.
  // While it is worked on the change may be its own: how that ended counts, see done().
  void add_changed(const object::Key& item, Instant now);
  // Ends the count of an item's failures.
  void forget(const object::Key& item) { limiter_.forget(item); }

  // The next item, oldest first, to be worked on until done() says so.
  std::optional<Taken> take(Instant now);
  // How long it was worked on; nothing if it was not.
  std::optional<Duration> done(const object::Key& item, Instant now);

  // When the next of those that wait for a time is ready.
  [[nodiscard]] std::optional<Instant> next_ready() const;
  // Items that take() would give.
  [[nodiscard]] std::size_t depth() const { return order_.size(); }
  [[nodiscard]] std::size_t waiting() const { return ready_at_.size(); }
  [[nodiscard]] std::size_t failures(const object::Key& item) const {
    return limiter_.failures(item);
  }
  [[nodiscard]] Unfinished unfinished(Instant now) const;
  // Items that came into the queue.
  [[nodiscard]] std::size_t added_total() const { return added_total_; }

 private:
  void move_ready(Instant now);

  RateLimiter limiter_;
  std::deque<object::Key> order_;
  std::map<object::Key, Instant> dirty_;       // needs work, since when
  std::map<object::Key, Instant> processing_;  // since when
  std::set<object::Key> changed_;              // while they were worked on
  std::map<object::Key, Instant> ready_at_;
  std::set<std::pair<Instant, object::Key>> by_time_;  // the same, earliest first
  std::size_t added_total_ = 0;
};

}  // namespace sightline::queue
