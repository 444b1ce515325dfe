// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/remote_selector/holdings.h"

#include <iterator>
#include <utility>

namespace sightline::remote_selector {

using selection_json::Note;
using selection_json::OpenReservation;
using selection_json::Renewal;

Holdings::Holdings(std::string instance, const Limits& limits)
    : instance_(std::move(instance)), limits_(limits) {}

std::uint64_t Holdings::begin() {
  const MutexLock lock(mutex_);
  // Numbers grow, and so the hint is always right.
  const std::uint64_t number = next_++;
  entries_.emplace_hint(entries_.end(), number, Entry{});
  return number;
}

void Holdings::abandon(std::uint64_t number) {
  const MutexLock lock(mutex_);
  entries_.erase(number);
}

void Holdings::book(std::uint64_t number, const RouterAttempt& place, selection::Adoption work) {
  const MutexLock lock(mutex_);
  const auto entry = entries_.find(number);
  // The question was abandoned while the router answered.
  if (entry == entries_.end()) return;
  entry->second.place = place;
  entry->second.life = sign_of(work.worker);
  entry->second.work = std::move(work);
}

std::shared_ptr<fleet::LifeSign> Holdings::sign_of(const std::string& worker) {
  auto& sign = signs_[worker];
  if (!sign) sign = std::make_shared<fleet::LifeSign>();
  return sign;
}

std::uint64_t Holdings::first_token(std::uint64_t number, Instant now) {
  const MutexLock lock(mutex_);
  const auto entry = entries_.find(number);
  // Only the first call counts. Later tokens of the answer change nothing.
  if (entry == entries_.end() || entry->second.work.is_decoding) return 0;
  entry->second.work.is_decoding = true;
  const RouterAttempt place = entry->second.place;
  note(place.router, {.number = number, .attempt = place.attempt, .ending = std::nullopt}, now);
  return place.router;
}

std::uint64_t Holdings::end(std::uint64_t number, const selection::Ending& ending, Instant now) {
  const MutexLock lock(mutex_);
  const auto entry = entries_.find(number);
  if (entry == entries_.end()) return 0;
  const RouterAttempt place = entry->second.place;
  entries_.erase(entry);
  note(place.router, {.number = number, .attempt = place.attempt, .ending = ending}, now);
  return place.router;
}

// A note without room is lost. The next list repairs this.
void Holdings::note(std::uint64_t router, Note note, Instant now) {
  // The limit protects the memory of a frontend whose routers do not answer.
  if (waiting_ >= limits_.notes_max) {
    ++dropped_;
    return;
  }
  notes_[router].push_back({std::move(note), now});
  ++waiting_;
}

std::shared_ptr<fleet::LifeSign> Holdings::life(std::uint64_t number) {
  const MutexLock lock(mutex_);
  const auto entry = entries_.find(number);
  // A caller may raise the sign in any case, so it gets one that no list reads.
  if (entry == entries_.end() || !entry->second.life) return std::make_shared<fleet::LifeSign>();
  return entry->second.life;
}

std::vector<Holdings::TimedNote> Holdings::take_notes(std::uint64_t router, std::size_t count_max,
                                                      Instant now) {
  std::vector<TimedNote> taken;
  const MutexLock lock(mutex_);
  const auto queue = notes_.find(router);
  if (queue == notes_.end()) return taken;
  drop_old(queue->second, now);
  // Notes leave the queue before they are sent. A note is never sent twice at the same time.
  while (!queue->second.empty() && taken.size() < count_max) {
    taken.push_back(std::move(queue->second.front()));
    queue->second.pop_front();
    --waiting_;
  }
  if (queue->second.empty()) notes_.erase(queue);
  return taken;
}

void Holdings::put_back(std::uint64_t router, std::vector<TimedNote> notes) {
  const MutexLock lock(mutex_);
  Queue& queue = notes_[router];
  // From the last one on, because each goes to the front of the queue.
  for (auto note = notes.rbegin(); note != notes.rend(); ++note) {
    if (waiting_ >= limits_.notes_max) {
      ++dropped_;
      continue;
    }
    queue.push_front(std::move(*note));
    ++waiting_;
  }
  if (queue.empty()) notes_.erase(router);
}

void Holdings::drop_old(Queue& queue, Instant now) {
  while (!queue.empty() && now - queue.front().at >= limits_.note_age_max) {
    queue.pop_front();
    --waiting_;
    ++dropped_;
  }
}

void Holdings::drop_old_notes(Instant now) {
  const MutexLock lock(mutex_);
  for (auto queue = notes_.begin(); queue != notes_.end();) {
    drop_old(queue->second, now);
    queue = queue->second.empty() ? notes_.erase(queue) : std::next(queue);
  }
}

void Holdings::count_dropped(std::size_t notes) {
  const MutexLock lock(mutex_);
  dropped_ += notes;
}

bool Holdings::has_notes(std::uint64_t router) const {
  const MutexLock lock(mutex_);
  return notes_.contains(router);
}

std::vector<Renewal> Holdings::list_for(std::uint64_t router) const {
  std::vector<Renewal> parts;
  const MutexLock lock(mutex_);
  Renewal part{.instance = instance_, .from = 0, .up_to = 0, .open = {}};
  for (const auto& [number, entry] : entries_) {
    const bool is_booked = entry.place.router == router;
    // The router may have reserved an open question already. It must not count as ended.
    if (!is_booked && entry.place.router != 0) continue;
    if (part.open.size() == limits_.part_max) {
      part.up_to = part.open.back().number;
      Renewal next{.instance = instance_, .from = part.up_to + 1, .up_to = 0, .open = {}};
      parts.push_back(std::exchange(part, std::move(next)));
    }
    OpenReservation held{
        .number = number, .attempt = entry.place.attempt, .is_booked = is_booked, .work = {}};
    if (is_booked) held.work = entry.work;
    part.open.push_back(std::move(held));
  }
  // Later questions have higher numbers.
  part.up_to = next_ - 1;
  parts.push_back(std::move(part));
  return parts;
}

std::size_t Holdings::move(const std::function<bool(std::uint64_t)>& counts, std::uint64_t to) {
  std::size_t moved = 0;
  const MutexLock lock(mutex_);
  for (auto& [number, entry] : entries_) {
    RouterAttempt& place = entry.place;
    if (place.router == 0 || place.router == to || counts(place.router)) continue;
    // The higher attempt has priority at the routers over the old reservation.
    place = {.router = to, .attempt = place.attempt + 1};
    ++moved;
  }
  return moved;
}

void Holdings::drop_notes(const std::function<bool(std::uint64_t)>& counts) {
  const MutexLock lock(mutex_);
  for (auto queue = notes_.begin(); queue != notes_.end();) {
    if (counts(queue->first)) {
      ++queue;
      continue;
    }
    waiting_ -= queue->second.size();
    dropped_ += queue->second.size();
    queue = notes_.erase(queue);
  }
}

std::vector<std::string> Holdings::take_alive() {
  std::vector<std::string> alive;
  const MutexLock lock(mutex_);
  for (auto sign = signs_.begin(); sign != signs_.end();) {
    const bool is_raised = sign->second->raised();
    if (is_raised && alive.size() < selection_json::kAliveMax) alive.push_back(sign->first);
    // The next call reports only later answers.
    sign->second->begin_period(false);
    // No other owner exists, and so no request runs there.
    sign = !is_raised && sign->second.use_count() == 1 ? signs_.erase(sign) : std::next(sign);
  }
  return alive;
}

std::size_t Holdings::open() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

std::uint64_t Holdings::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

}  // namespace sightline::remote_selector
