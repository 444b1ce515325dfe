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

#include "router/replicas/load/message.h"
#include "router/replicas/load/own_load.h"
#include "router/workers/fleet/load_book.h"

namespace sightline::load_exchange {

// What request threads leave for sl-load. Changes of a rank are added up, so that none is ever
// dropped and memory is bounded by the ranks that there are, however long nobody takes them; the
// lock is held for memory work only. It may be filled before anybody reads it.
// Thread safety: all methods from any thread.
class LoadQueue {
 public:
  // Reservations that wait; further ones are counted and left out, and count twice for longer.
  static constexpr std::size_t kTakenMax = 131'072;

  // An observer for a book, which may outlive the exchange.
  static fleet::LoadObserver observer_of(std::shared_ptr<LoadQueue> queue);

  void put(const fleet::LoadChange& change) SL_EXCLUDES(mutex_);
  // Reservations that are booked at this router although another one may have them.
  void put_taken(std::vector<load::ReservationName> names) SL_EXCLUDES(mutex_);

  // Called, on whatever thread, when something is put where nothing was; it returns at once.
  void open(std::function<void()> wake) SL_EXCLUDES(mutex_);
  // What is put from now on is left out.
  void close() SL_EXCLUDES(mutex_);

  using Deltas = std::map<fleet::RankName, load::Delta>;
  struct Content {
    Deltas deltas;
    std::vector<load::ReservationName> taken;
    std::uint64_t taken_left_out = 0;  // since the last time
  };
  // All that was put.
  [[nodiscard]] Content take() SL_EXCLUDES(mutex_);
  [[nodiscard]] bool is_empty() const SL_EXCLUDES(mutex_);

 private:
  using Wake = std::shared_ptr<const std::function<void()>>;
  [[nodiscard]] bool holds_nothing() const SL_REQUIRES(mutex_) {
    return content_.deltas.empty() && content_.taken.empty();
  }

  mutable Mutex mutex_;
  Content content_ SL_GUARDED_BY(mutex_);
  Wake wake_ SL_GUARDED_BY(mutex_);
  bool closed_ SL_GUARDED_BY(mutex_) = false;
};

}  // namespace sightline::load_exchange
