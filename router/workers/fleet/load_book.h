// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"

#include "router/workers/fleet/load.h"

namespace sightline::fleet {

// Called for each step of each booking of this router, once, on the thread that took the step. The
// step already counts here. The steps of one booking come in order. The steps of several bookings
// come in any order and at the same time.
// The book holds no lock during the call, but its callers may, and requests wait. So it must do no
// more than put the change into a queue. It is also called for bookings that outlive the book, so
// what it refers to must outlive them.
using LoadObserver = std::function<void(const LoadChange&)>;

// The most other routers whose load counts.
inline constexpr std::size_t kLoadSourcesMax = 64;
// Routers send all their load each second. After this time three messages are missing.
inline constexpr Duration kLoadSourceTimeout = std::chrono::seconds(3);

class BookedWork;

// The booked work of one rank: of this router, and of the others by their messages. One cell serves
// all snapshots of the rank, so reading and booking need no look-up.
// Thread safety: all methods from any thread.
class LoadCell : public std::enable_shared_from_this<LoadCell> {
  struct Shared;

 public:
  // Of no book and without an observer.
  LoadCell() = default;
  // Called by LoadBook::open().
  LoadCell(RankName name, std::shared_ptr<Shared> shared)
      : name_(std::move(name)), shared_(std::move(shared)) {}

  // Returns all booked work. The choice of a rank uses this.
  [[nodiscard]] Load read(Instant now) const;
  // Returns the work booked by this router.
  [[nodiscard]] Load own(Instant now) const;

  // Books a request, within Booking::bounded(), so sums of bookings cannot overflow. The booking
  // ends with the returned object, also if its rank or the book is gone by then.
  [[nodiscard]] BookedWork reserve(const Booking& wanted, Instant now);

 private:
  friend class LoadBook;
  friend class BookedWork;

  // What all cells of a book share.
  struct Shared {
    explicit Shared(LoadObserver told) : observer(std::move(told)) {}

    const LoadObserver observer;  // may be empty
    std::atomic<std::uint64_t> next_booking = 1;
  };
  // Another router. After too long a silence it counts as a new source if it comes back.
  struct LoadSource {
    LoadSource(Duration silence_max, Instant now) : timeout(silence_max), heard(now) {}

    const Duration timeout;
    std::atomic<Instant> heard;

    [[nodiscard]] bool is_heard(Instant now) const {
      return now - heard.load(std::memory_order_relaxed) < timeout;
    }
  };
  // The work of another router on this rank.
  struct Others {
    std::shared_ptr<const LoadSource> source;
    Load load;  // without recent_prefill_blocks
    RecentWork recent;
  };

  [[nodiscard]] Load own_at(Instant now) const SL_REQUIRES(mutex_);
  // The steps of a booking.
  void begin_decoding(const Booking& booking);
  void end(const Booking& booking, bool decoding);
  // Whether an observer is called.
  [[nodiscard]] bool is_told() const { return shared_ && shared_->observer; }
  void tell(const LoadChange& change) const;  // needs is_told()

  // What LoadBook changes of the others' work.
  void set_others(std::shared_ptr<const LoadSource> source, const Load& load, Instant now);
  void copy_others(const LoadCell& from);
  void drop_silent(Instant now);
  void drop(const LoadSource& source);

  const RankName name_ = {};
  // Null: of no book.
  const std::shared_ptr<Shared> shared_ = nullptr;
  mutable Mutex mutex_;
  // Of this router, without recent_prefill_blocks.
  Load load_ SL_GUARDED_BY(mutex_);
  RecentWork recent_ SL_GUARDED_BY(mutex_);
  // One of each source.
  std::vector<Others> others_ SL_GUARDED_BY(mutex_);
};

// The booked work of a request. It is released exactly once, at the latest by the destructor.
// Thread safety: one thread at a time, one owner.
class BookedWork {
 public:
  // Holds no booking.
  BookedWork() = default;
  BookedWork(BookedWork&& other) noexcept;
  BookedWork& operator=(BookedWork&& other) noexcept;
  BookedWork(const BookedWork&) = delete;
  BookedWork& operator=(const BookedWork&) = delete;
  ~BookedWork() { release(); }

  // The first token has come: prefill ends and decode begins. A non-streamed answer has no moment
  // of this kind, so it counts as prefill to its end.
  void first_token();
  // Ends the booking. A second call does nothing.
  void release();

 private:
  friend class LoadCell;
  BookedWork(std::shared_ptr<LoadCell> cell, const Booking& booking, BookingId id)
      : cell_(std::move(cell)), booking_(booking), id_(id) {}

  std::shared_ptr<LoadCell> cell_;
  Booking booking_;
  // 0: without an observer.
  BookingId id_;
  bool decoding_ = false;
};

// The booked work of all ranks. Other routers report theirs rank by rank, always as a total. All
// that a router reported expires when it is silent for the timeout.
// Thread safety: all methods from any thread.
class LoadBook {
 public:
  struct Options {
    LoadObserver observer = {};
    Duration source_timeout = kLoadSourceTimeout;
  };

  explicit LoadBook(Options options);

  // Returns a cell for a rank that begins. It takes over what others booked under the name. What
  // this router booked on an earlier rank of that name stays in the earlier cell.
  [[nodiscard]] std::shared_ptr<LoadCell> open(const RankName& name);

  // Sets all that another router has booked on the rank. It replaces what that router sent before
  // and is not checked. Returns false if there is no rank of this name, or if the source is above
  // kLoadSourcesMax.
  bool set_others(std::string_view source, const RankName& name, const Load& load, Instant now);
  // All that the source sent still holds. Returns false if no load of the source counts any more.
  // The caller then requests all its load.
  bool hear(std::string_view source, Instant now);
  // The source is gone, with all its load.
  void forget(std::string_view source);

 private:
  using LoadSource = LoadCell::LoadSource;
  // Returns null if the source is not known, or was silent for too long.
  std::shared_ptr<LoadSource> find(std::string_view source, Instant now) SL_REQUIRES(mutex_);
  // Returns null if there is no room.
  std::shared_ptr<LoadSource> begin(std::string_view source, Instant now) SL_REQUIRES(mutex_);

  const std::shared_ptr<LoadCell::Shared> shared_;
  const Duration source_timeout_;
  // Locked before the mutexes of the cells.
  Mutex mutex_;
  std::map<RankName, std::weak_ptr<LoadCell>> cells_ SL_GUARDED_BY(mutex_);
  // Above it, cells that are gone are dropped.
  std::size_t cells_max_ SL_GUARDED_BY(mutex_) = 64;
  std::map<std::string, std::shared_ptr<LoadSource>, std::less<>> sources_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::fleet
