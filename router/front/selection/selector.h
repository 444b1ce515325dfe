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

// The interface between a frontend and the router role. It chooses the worker of a request. Facts
// about the worker return through it as well. Reservations, suspicion and audit are therefore all
// on the router's side.
//
// Thread safety: any I/O thread may call any method.
class Selector {
 public:
  virtual ~Selector() = default;

  // Chooses the worker for one attempt and reserves its load. Errors:
  // - Unavailable, if no worker may serve the request.
  // - OutOfDate, if the workers' blocks have another size than the inquiry's. Served shows the new
  //   size already or soon.
  [[nodiscard]] virtual Task<Result<Selection>> select(const Inquiry& inquiry) = 0;
  // Report the first token and the end of an attempt. A reservation that has ended or never existed
  // is ignored.
  virtual void first_token(ReservationId reservation) = 0;
  virtual void end(ReservationId reservation, const Ending& ending) = 0;
  // Returns the sign that the caller raises with every piece of the answer. Never null.
  [[nodiscard]] virtual std::shared_ptr<fleet::LifeSign> life(ReservationId reservation) = 0;

  // Makes the same choice without a reservation. Errors: as select().
  [[nodiscard]] virtual Task<Result<Explanation>> explain(const Inquiry& inquiry) = 0;
};

// Owns the reservation of one selection. The reservation ends exactly once. If the owner does not
// end it, the destructor ends it as Unused.
//
// Thread safety: one owner. The selector must live longer.
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
  // Never null. The reservation must not have ended.
  [[nodiscard]] std::shared_ptr<fleet::LifeSign> life() const { return selector_->life(id_); }

 private:
  // Null after the end.
  Selector* selector_;
  ReservationId id_;
};

}  // namespace sightline::selection
