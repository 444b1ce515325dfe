// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/load_book.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace sightline::fleet {

Load LoadCell::own_at(Instant now) const {
  Load load = load_;
  load.recent_prefill_blocks = recent_.at(now);
  return load;
}

Load LoadCell::own(Instant now) const {
  const MutexLock lock(mutex_);
  return own_at(now);
}

Load LoadCell::read(Instant now) const {
  const MutexLock lock(mutex_);
  Load load = own_at(now);
  for (const Others& others : others_) {
    // A router that stopped without a farewell must not count until someone removes it.
    if (!others.source->is_heard(now)) continue;
    Load more = others.load;
    more.recent_prefill_blocks = others.recent.at(now);
    load += more;
  }
  return load;
}

BookedWork LoadCell::reserve(const Booking& wanted, Instant now) {
  const Booking booking = wanted.bounded();
  {
    const MutexLock lock(mutex_);
    ++load_.in_flight;
    load_.prefill_tokens += booking.prefill_tokens;
    recent_.add(booking.prefill_blocks(), now);
  }
  BookingId id;
  // After the lock is released: the observer puts the change into a queue with a lock of its own.
  if (is_told()) {
    id.value = shared_->next_booking.fetch_add(1, std::memory_order_relaxed);
    tell({.rank = name_, .id = id, .step = LoadChange::Step::Reserved, .booking = booking});
  }
  return {shared_from_this(), booking, id};
}

void LoadCell::begin_decoding(const Booking& booking) {
  const MutexLock lock(mutex_);
  // A violation means that a booking ended twice. Wrong totals would misroute all later requests.
  SL_CHECK(load_.prefill_tokens >= booking.prefill_tokens);
  load_.prefill_tokens -= booking.prefill_tokens;
  load_.blocks += booking.blocks;
}

void LoadCell::end(const Booking& booking, bool decoding) {
  const MutexLock lock(mutex_);
  SL_CHECK(load_.in_flight > 0);
  --load_.in_flight;
  if (decoding) {
    SL_CHECK(load_.blocks >= booking.blocks);
    load_.blocks -= booking.blocks;
  } else {
    SL_CHECK(load_.prefill_tokens >= booking.prefill_tokens);
    load_.prefill_tokens -= booking.prefill_tokens;
  }
}

void LoadCell::tell(const LoadChange& change) const { shared_->observer(change); }

void LoadCell::set_others(std::shared_ptr<const LoadSource> source, const Load& load, Instant now) {
  const MutexLock lock(mutex_);
  // Totals replace each other. A late message cannot add up.
  std::erase_if(others_, [&](const Others& others) { return others.source == source; });
  if (load == Load{}) return;
  others_.push_back({std::move(source), load, RecentWork(load.recent_prefill_blocks, now)});
}

void LoadCell::copy_others(const LoadCell& from) {
  std::vector<Others> others;
  {
    // The two locks are not held together, so their order does not matter.
    const MutexLock lock(from.mutex_);
    others = from.others_;
  }
  const MutexLock lock(mutex_);
  others_ = std::move(others);
}

void LoadCell::drop_silent(Instant now) {
  const MutexLock lock(mutex_);
  std::erase_if(others_, [&](const Others& others) { return !others.source->is_heard(now); });
}

void LoadCell::drop(const LoadSource& source) {
  const MutexLock lock(mutex_);
  std::erase_if(others_, [&](const Others& others) { return others.source.get() == &source; });
}

BookedWork::BookedWork(BookedWork&& other) noexcept
    : cell_(std::exchange(other.cell_, nullptr)),
      booking_(other.booking_),
      id_(other.id_),
      decoding_(other.decoding_) {}

BookedWork& BookedWork::operator=(BookedWork&& other) noexcept {
  if (this == &other) return *this;
  release();
  cell_ = std::exchange(other.cell_, nullptr);
  booking_ = other.booking_;
  id_ = other.id_;
  decoding_ = other.decoding_;
  return *this;
}

void BookedWork::first_token() {
  if (!cell_ || decoding_) return;
  decoding_ = true;
  cell_->begin_decoding(booking_);
  if (!cell_->is_told()) return;
  cell_->tell(
      {.rank = cell_->name_, .id = id_, .step = LoadChange::Step::FirstToken, .booking = booking_});
}

void BookedWork::release() {
  // A second call finds no cell.
  const auto cell = std::exchange(cell_, nullptr);
  if (!cell) return;
  cell->end(booking_, decoding_);
  if (!cell->is_told()) return;
  cell->tell({.rank = cell->name_,
              .id = id_,
              .step = LoadChange::Step::Ended,
              .booking = booking_,
              .had_first_token = decoding_});
}

LoadBook::LoadBook(Options options)
    : shared_(std::make_shared<LoadCell::Shared>(std::move(options.observer))),
      source_timeout_(options.source_timeout) {}

std::shared_ptr<LoadCell> LoadBook::open(const RankName& name) {
  const auto cell = std::make_shared<LoadCell>(name, shared_);
  const MutexLock lock(mutex_);
  // Cells end with the last snapshot that uses them. The book finds that out from time to time.
  if (cells_.size() >= cells_max_) {
    std::erase_if(cells_, [](const auto& entry) { return entry.second.expired(); });
    cells_max_ = std::max(cells_max_, 2 * cells_.size());
  }
  std::weak_ptr<LoadCell>& place = cells_[name];
  // Otherwise the others' load would be missing until their next snapshot.
  if (const auto earlier = place.lock()) cell->copy_others(*earlier);
  place = cell;
  return cell;
}

std::shared_ptr<LoadBook::LoadSource> LoadBook::find(std::string_view source, Instant now) {
  const auto known = sources_.find(source);
  return known != sources_.end() && known->second->is_heard(now) ? known->second : nullptr;
}

std::shared_ptr<LoadBook::LoadSource> LoadBook::begin(std::string_view source, Instant now) {
  // Room is made only when a new source needs it.
  std::erase_if(sources_, [now](const auto& entry) { return !entry.second->is_heard(now); });
  for (const auto& [name, place] : cells_) {
    if (const auto cell = place.lock()) cell->drop_silent(now);
  }
  if (sources_.size() >= kLoadSourcesMax) return nullptr;
  auto begun = std::make_shared<LoadSource>(source_timeout_, now);
  sources_.emplace(source, begun);
  return begun;
}

bool LoadBook::set_others(std::string_view source, const RankName& name, const Load& load,
                          Instant now) {
  const MutexLock lock(mutex_);
  const auto place = cells_.find(name);
  const auto cell = place == cells_.end() ? nullptr : place->second.lock();
  if (!cell) return false;
  auto from = find(source, now);
  if (!from) from = begin(source, now);
  if (!from) return false;
  // Each message of a source keeps all its load alive.
  from->heard = now;
  cell->set_others(std::move(from), load, now);
  return true;
}

bool LoadBook::hear(std::string_view source, Instant now) {
  const MutexLock lock(mutex_);
  const auto known = find(source, now);
  if (known) known->heard = now;
  return known != nullptr;
}

void LoadBook::forget(std::string_view source) {
  const MutexLock lock(mutex_);
  const auto known = sources_.find(source);
  if (known == sources_.end()) return;
  for (const auto& [name, place] : cells_) {
    if (const auto cell = place.lock()) cell->drop(*known->second);
  }
  sources_.erase(known);
}

}  // namespace sightline::fleet
