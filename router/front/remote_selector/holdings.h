// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "router/front/selection/selection.h"
#include "router/front/selection_json/renewal.h"
#include "router/workers/fleet/life_sign.h"

namespace sightline::remote_selector {

// The reservations of a frontend and the router of each, with the notes that the frontend still has
// to send about them.
//
// Thread safety: any thread may call any method. They do memory work only.
class Holdings {
 public:
  // The limits of notes and lists.
  struct Limits {
    // Waiting notes for all routers.
    std::size_t notes_max = 1 << 16;
    // After this time the router has dropped the reservation anyway.
    Duration note_age_max = std::chrono::seconds(15);
    // Reservations in one part of a list.
    std::size_t part_max = 512;
  };
  explicit Holdings(std::string instance, const Limits& limits);
  explicit Holdings(std::string instance) : Holdings(std::move(instance), Limits{}) {}

  // Begins a question. The returned number, from 1 on, names the question and its reservation.
  std::uint64_t begin();
  // The question led to no reservation.
  void abandon(std::uint64_t number);
  // The router of a reservation, and the attempt that created it there.
  struct RouterAttempt {
    std::uint64_t router = 0;
    std::uint32_t attempt = 0;
  };
  // The router has reserved the load.
  void book(std::uint64_t number, const RouterAttempt& place, selection::Adoption work);

  // Both create a note for the router that has the reservation, and return the router's number.
  // They return 0 if the reservation does not exist, or if the first token was noted already.
  std::uint64_t first_token(std::uint64_t number, Instant now);
  std::uint64_t end(std::uint64_t number, const selection::Ending& ending, Instant now);
  // Returns the sign of the reservation's worker. Never null.
  std::shared_ptr<fleet::LifeSign> life(std::uint64_t number);

  // A note and the time when it was created.
  struct TimedNote {
    selection_json::Note note;
    Instant at{};
  };
  // Returns the oldest notes for a router, at most count_max. Drops the ones that are too old.
  std::vector<TimedNote> take_notes(std::uint64_t router, std::size_t count_max, Instant now);
  // Puts notes back that could not be sent. They keep their age.
  void put_back(std::uint64_t router, std::vector<TimedNote> notes);
  // Drops notes that are too old, for all routers. A router that does not answer therefore does not
  // take room from others for long.
  void drop_old_notes(Instant now);
  // Counts notes that a router rejected.
  void count_dropped(std::size_t notes);
  [[nodiscard]] bool has_notes(std::uint64_t router) const;

  // Returns all reservations at a router as consecutive parts, at least one.
  [[nodiscard]] std::vector<selection_json::Renewal> list_for(std::uint64_t router) const;
  // Moves all reservations of routers for which `counts` is false to the router `to`, by a later
  // attempt. Returns their number.
  std::size_t move(const std::function<bool(std::uint64_t)>& counts, std::uint64_t to);
  // Drops the notes for routers for which `counts` is false.
  void drop_notes(const std::function<bool(std::uint64_t)>& counts);

  // Returns the workers from which parts of answers arrived after the last call.
  [[nodiscard]] std::vector<std::string> take_alive();

  // The number of reservations and open questions.
  [[nodiscard]] std::size_t open() const;
  // The number of notes dropped so far.
  [[nodiscard]] std::uint64_t dropped() const;
  [[nodiscard]] const std::string& instance() const { return instance_; }

 private:
  struct Entry {
    // Router 0 means that the question is still open.
    RouterAttempt place;
    selection::Adoption work;
    std::shared_ptr<fleet::LifeSign> life;
  };
  using Queue = std::deque<TimedNote>;  // oldest first
  void note(std::uint64_t router, selection_json::Note note, Instant now) SL_REQUIRES(mutex_);
  void drop_old(Queue& queue, Instant now) SL_REQUIRES(mutex_);
  std::shared_ptr<fleet::LifeSign> sign_of(const std::string& worker) SL_REQUIRES(mutex_);

  const std::string instance_;
  const Limits limits_;
  mutable Mutex mutex_;
  std::map<std::uint64_t, Entry> entries_ SL_GUARDED_BY(mutex_);  // by number
  std::uint64_t next_ SL_GUARDED_BY(mutex_) = 1;
  // By router.
  std::map<std::uint64_t, Queue> notes_ SL_GUARDED_BY(mutex_);
  // Notes for all routers.
  std::size_t waiting_ SL_GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_ SL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<fleet::LifeSign>> signs_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::remote_selector
