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

// What a frontend has reserved and at which router, and what is to be told of it.
// Thread safety: all methods from any thread; they do memory work only.
class Holdings {
 public:
  struct Limits {
    std::size_t notes_max = 1 << 16;                   // that wait, of all routers
    Duration note_age_max = std::chrono::seconds(15);  // then the router has forgotten it anyway
    std::size_t part_max = 512;                        // reservations of a part of a list
  };
  explicit Holdings(std::string instance, const Limits& limits);
  explicit Holdings(std::string instance) : Holdings(std::move(instance), Limits{}) {}

  // A question begins; the number names it and the reservation that it leads to. From 1 on.
  std::uint64_t begin();
  // It leads to none.
  void abandon(std::uint64_t number);
  // The router has booked it, by this attempt.
  struct Place {
    std::uint64_t router = 0;
    std::uint32_t attempt = 0;
  };
  void book(std::uint64_t number, const Place& place, selection::Adoption work);

  // Both leave a note for the router that has the reservation, whose number is returned; 0: there
  // is no such reservation, or the same was noted.
  std::uint64_t first_token(std::uint64_t number, Instant now);
  std::uint64_t end(std::uint64_t number, const selection::Ending& ending, Instant now);
  // Of the reservation's worker; not null.
  std::shared_ptr<fleet::LifeSign> life(std::uint64_t number);

  struct Noted {
    selection_json::Note note;
    Instant at{};
  };
  // The oldest notes for a router, at most so many; those too old are dropped.
  std::vector<Noted> take_notes(std::uint64_t router, std::size_t count_max, Instant now);
  // They could not be told, and go on growing old.
  void put_back(std::uint64_t router, std::vector<Noted> notes);
  // Drops those too old, of all routers: one that does not answer takes nobody's room for long.
  void drop_old_notes(Instant now);
  // A router refused them.
  void count_dropped(std::size_t notes);
  [[nodiscard]] bool has_notes(std::uint64_t router) const;

  // All that is held at a router, in parts that follow each other; at least one.
  [[nodiscard]] std::vector<selection_json::Renewal> list_for(std::uint64_t router) const;
  // What is held at routers that `counts` denies is held at another one from now on, by a later
  // attempt. How much that was.
  std::size_t move(const std::function<bool(std::uint64_t)>& counts, std::uint64_t to);
  // Forgets the notes for routers that `counts` denies.
  void drop_notes(const std::function<bool(std::uint64_t)>& counts);

  // Workers of whose answers pieces came since this was called last.
  [[nodiscard]] std::vector<std::string> take_alive();

  [[nodiscard]] std::size_t open() const;
  // Notes dropped so far.
  [[nodiscard]] std::uint64_t dropped() const;
  [[nodiscard]] const std::string& instance() const { return instance_; }

 private:
  struct Entry {
    Place place;  // router 0: it is being asked for
    selection::Adoption work;
    std::shared_ptr<fleet::LifeSign> life;
  };
  using Queue = std::deque<Noted>;  // the oldest first
  void note(std::uint64_t router, selection_json::Note note, Instant now) SL_REQUIRES(mutex_);
  void drop_old(Queue& queue, Instant now) SL_REQUIRES(mutex_);
  std::shared_ptr<fleet::LifeSign> sign_of(const std::string& worker) SL_REQUIRES(mutex_);

  const std::string instance_;
  const Limits limits_;
  mutable Mutex mutex_;
  std::map<std::uint64_t, Entry> entries_ SL_GUARDED_BY(mutex_);  // by number
  std::uint64_t next_ SL_GUARDED_BY(mutex_) = 1;
  std::map<std::uint64_t, Queue> notes_ SL_GUARDED_BY(mutex_);  // by router
  std::size_t waiting_ SL_GUARDED_BY(mutex_) = 0;               // notes of all routers
  std::uint64_t dropped_ SL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<fleet::LifeSign>> signs_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::remote_selector
