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

// Told of each step of each booking of this router, once, when it counts here already, on the
// thread that took it. Steps of one booking come in their order, those of several in any order and
// at once. The book holds no lock meanwhile, but its callers may, and requests wait: it is to do no
// more than put the change into a queue. It is told of the bookings that are left when the book is
// gone, too; what it refers to outlives them.
using LoadObserver = std::function<void(const LoadChange&)>;

inline constexpr std::size_t kLoadSourcesMax = 64;
// Routers tell all that they have booked each second: three times it did not come.
inline constexpr Duration kLoadSourceTimeout = std::chrono::seconds(3);

class BookedWork;

// The work booked on one rank: by this router, and, as far as they tell, by others. One cell serves
// all snapshots of the rank, so that reading and booking look nothing up.
// Thread safety: all methods from any thread.
class LoadCell : public std::enable_shared_from_this<LoadCell> {
  struct Shared;

 public:
  LoadCell() = default;  // of no book: nobody is told
  // By LoadBook::open().
  LoadCell(RankName name, std::shared_ptr<Shared> shared)
      : name_(std::move(name)), shared_(std::move(shared)) {}

  // All that is booked: what a choice among ranks weighs.
  [[nodiscard]] Load read(Instant now) const;
  // By this router alone.
  [[nodiscard]] Load own(Instant now) const;

  // Books a request, as far as Booking::bounded(): so sums of any number of them are exact. The
  // booking ends with the reservation, on whatever way, also when its rank or the book is gone.
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
  // Another router. When it was silent for too long, it is another source should it come back.
  struct Source {
    Source(Duration silence_max, Instant now) : timeout(silence_max), heard(now) {}

    const Duration timeout;
    std::atomic<Instant> heard;

    [[nodiscard]] bool is_heard(Instant now) const {
      return now - heard.load(std::memory_order_relaxed) < timeout;
    }
  };
  struct Others {
    std::shared_ptr<const Source> source;
    Load load;  // but for recent_prefill_blocks
    RecentWork recent;
  };

  [[nodiscard]] Load own_at(Instant now) const SL_REQUIRES(mutex_);
  void begin_decoding(const Booking& booking);
  void end(const Booking& booking, bool decoding);
  [[nodiscard]] bool is_told() const { return shared_ && shared_->observer; }
  void tell(const LoadChange& change) const;  // only if is_told()

  void set_others(std::shared_ptr<const Source> source, const Load& load, Instant now);
  void copy_others(const LoadCell& from);
  void drop_silent(Instant now);
  void drop(const Source& source);

  const RankName name_ = {};
  const std::shared_ptr<Shared> shared_ = nullptr;  // null: of no book
  mutable Mutex mutex_;
  Load load_ SL_GUARDED_BY(mutex_);  // of this router, but for recent_prefill_blocks
  RecentWork recent_ SL_GUARDED_BY(mutex_);
  std::vector<Others> others_ SL_GUARDED_BY(mutex_);  // one of each source
};

// A request's booked work: released exactly once, at the latest when this is destroyed.
// Thread safety: none; one owner.
class BookedWork {
 public:
  BookedWork() = default;
  BookedWork(BookedWork&& other) noexcept;
  BookedWork& operator=(BookedWork&& other) noexcept;
  BookedWork(const BookedWork&) = delete;
  BookedWork& operator=(const BookedWork&) = delete;
  ~BookedWork() { release(); }

  // The first token has come: the prefill is done, decoding begins. An answer that comes as a
  // whole has no such moment; its prefill weighs to the end.
  void first_token();
  void release();

 private:
  friend class LoadCell;
  BookedWork(std::shared_ptr<LoadCell> cell, const Booking& booking, BookingId id)
      : cell_(std::move(cell)), booking_(booking), id_(id) {}

  std::shared_ptr<LoadCell> cell_;
  Booking booking_;
  BookingId id_;  // 0: nobody is told
  bool decoding_ = false;
};

// What is booked on all ranks, and who is told of it. What other routers booked is theirs to tell,
// rank by rank and as a whole each time; all that a router told is void once it was silent for the
// timeout.
// Thread safety: all methods from any thread.
class LoadBook {
 public:
  struct Options {
    LoadObserver observer = {};
    Duration source_timeout = kLoadSourceTimeout;
  };

  explicit LoadBook(Options options);

  // A cell for a rank that begins. What others booked under the name goes on; what this router has
  // booked on an earlier rank of the name stays there.
  [[nodiscard]] std::shared_ptr<LoadCell> open(const RankName& name);

  // All that another router has booked on the rank now, in place of what it told before; nothing of
  // it is checked. False: there is no such rank, or the source is one more than kLoadSourcesMax.
  bool set_others(std::string_view source, const RankName& name, const Load& load, Instant now);
  // All that the source told still holds. False: it told nothing that does; it is to tell all.
  bool hear(std::string_view source, Instant now);
  // The source is gone, with all that it told.
  void forget(std::string_view source);

 private:
  using Source = LoadCell::Source;
  // Null: it is not known, or was silent for too long.
  std::shared_ptr<Source> find(std::string_view source, Instant now) SL_REQUIRES(mutex_);
  // Null: no room.
  std::shared_ptr<Source> begin(std::string_view source, Instant now) SL_REQUIRES(mutex_);

  const std::shared_ptr<LoadCell::Shared> shared_;
  const Duration source_timeout_;
  Mutex mutex_;  // before those of the cells
  std::map<RankName, std::weak_ptr<LoadCell>> cells_ SL_GUARDED_BY(mutex_);
  std::size_t cells_max_ SL_GUARDED_BY(mutex_) = 64;  // until those that are gone are dropped
  std::map<std::string, std::shared_ptr<Source>, std::less<>> sources_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::fleet
