// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <memory>
#include <utility>

#include "common/base/result.h"
#include "common/runtime/task.h"

#include "router/front/selection/selection.h"
#include "router/workers/fleet/life_sign.h"

namespace sightline::selection {

// The seam between a frontend and the router role: who serves a request. What is learnt of the
// worker goes back through it, so that booking, suspicion and audit stand on one side.
// Thread safety: all methods from any I/O thread.
class Selector {
 public:
  virtual ~Selector() = default;

  // The choice for one attempt, with its work booked. Errors: Unavailable if nobody may serve it;
  // OutOfDate if the workers' blocks have another size than the inquiry's: what is served tells it
  // by now, or soon.
  [[nodiscard]] virtual Task<Result<Selection>> select(const Inquiry& inquiry) = 0;
  // How the attempt of a reservation goes: its first token, and its end. A reservation that has
  // ended, or never was, is passed over.
  virtual void first_token(ReservationId reservation) = 0;
  virtual void end(ReservationId reservation, const Ending& ending) = 0;
  // To be raised by every piece of the answer; not null.
  [[nodiscard]] virtual std::shared_ptr<fleet::LifeSign> life(ReservationId reservation) = 0;

  // The same choice, without booking anything. Error: as select().
  [[nodiscard]] virtual Task<Result<Explanation>> explain(const Inquiry& inquiry) = 0;
};

// The booked work of one selection: ends exactly once, at the latest, as Unused, when this is
// destroyed.
// Thread safety: none; one owner. The selector outlives it.
class Reservation {
 public:
  Reservation(Selector& selector, ReservationId id) : selector_(&selector), id_(id) {}
  Reservation(Reservation&& other) noexcept
      : selector_(std::exchange(other.selector_, nullptr)), id_(other.id_) {}
  Reservation& operator=(Reservation&&) = delete;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { end({}); }

  void first_token() {
    if (selector_ != nullptr) selector_->first_token(id_);
  }
  void end(const Ending& ending) {
    if (selector_ != nullptr) std::exchange(selector_, nullptr)->end(id_, ending);
  }
  // Not null.
  [[nodiscard]] std::shared_ptr<fleet::LifeSign> life() const { return selector_->life(id_); }

 private:
  Selector* selector_;  // null: it has ended
  ReservationId id_;
};

}  // namespace sightline::selection
