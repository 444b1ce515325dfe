// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "common/base/mutex.h"

#include "router/replicas/load/load_message.h"
#include "router/replicas/load/own_load.h"
#include "router/workers/fleet/load_book.h"

namespace sightline::load_exchange {

// What request threads leave for sl-load. Changes of a rank are added up, so no change is dropped.
// The memory depends on the number of ranks, even if sl-load reads nothing for a long time. The
// queue may be filled before it has a reader. Its lock is held for memory work only.
// Thread safety: all methods from any thread.
class LoadQueue {
 public:
  // The most reservations that wait. Further ones are counted and dropped, and their reservations
  // count twice for longer.
  static constexpr std::size_t kTakenMax = 131'072;

  // Returns an observer for a load book. It keeps the queue alive, so the book may outlive the
  // exchange.
  static fleet::LoadObserver observer_of(std::shared_ptr<LoadQueue> queue);

  // Adds a change of the load book.
  void put(const fleet::LoadChange& change) SL_EXCLUDES(mutex_);
  // Adds reservations that are booked here although another router may have booked them too.
  void put_taken(std::vector<load::ReservationName> names) SL_EXCLUDES(mutex_);

  // Sets the function to call when the empty queue gets something. It is called on any thread and
  // must return quickly.
  void open(std::function<void()> wake) SL_EXCLUDES(mutex_);
  // Drops the content, and all later additions.
  void close() SL_EXCLUDES(mutex_);

  using Deltas = std::map<fleet::RankName, load::Delta>;
  // What the queue holds.
  struct Content {
    Deltas deltas;
    std::vector<load::ReservationName> taken;
    // Since the last take().
    std::uint64_t taken_left_out = 0;
  };
  // Returns the content and empties the queue.
  [[nodiscard]] Content take() SL_EXCLUDES(mutex_);
  // Whether take() would return nothing.
  [[nodiscard]] bool is_empty() const SL_EXCLUDES(mutex_);

 private:
  using Wake = std::shared_ptr<const std::function<void()>>;
  // Without counters of dropped takeovers.
  [[nodiscard]] bool holds_nothing() const SL_REQUIRES(mutex_) {
    return content_.deltas.empty() && content_.taken.empty();
  }

  mutable Mutex mutex_;
  Content content_ SL_GUARDED_BY(mutex_);
  Wake wake_ SL_GUARDED_BY(mutex_);
  bool closed_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline::load_exchange
