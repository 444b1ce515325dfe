// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/load_book.h"

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::fleet {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using Step = LoadChange::Step;

constexpr Instant kStart{1'000s};
constexpr Booking kBooking{.prefill_tokens = 160, .blocks = 12, .block_size = 16};
const RankName kRank{"w", 0};
const RankName kOtherRank{"w", 1};

TEST(Load, PrefillWeighsUntilTheFirstTokenThenDecoding) {
  const auto cell = std::make_shared<LoadCell>();
  BookedWork reservation = cell->reserve(kBooking, kStart);
  EXPECT_EQ(cell->read(kStart).in_flight, 1U);
  EXPECT_EQ(cell->read(kStart).prefill_tokens, 160U);
  EXPECT_EQ(cell->read(kStart).blocks, 0U);
  reservation.first_token();
  reservation.first_token();
  EXPECT_EQ(cell->read(kStart).prefill_tokens, 0U);
  EXPECT_EQ(cell->read(kStart).blocks, 12U);
  reservation.release();
  reservation.release();
  EXPECT_EQ(cell->read(kStart).in_flight, 0U);
  EXPECT_EQ(cell->read(kStart).blocks, 0U);
}

TEST(Load, WithoutAFirstTokenThePrefillWeighsToTheEnd) {
  const auto cell = std::make_shared<LoadCell>();
  {
    const BookedWork reservation = cell->reserve(kBooking, kStart);
    EXPECT_EQ(cell->read(kStart).prefill_tokens, 160U);
  }
  EXPECT_EQ(cell->read(kStart).prefill_tokens, 0U);
  EXPECT_EQ(cell->read(kStart).blocks, 0U);
}

TEST(Load, EveryWayOutReleasesExactlyOnce) {
  const auto cell = std::make_shared<LoadCell>();
  {
    BookedWork first = cell->reserve(kBooking, kStart);
    BookedWork second = std::move(first);
    BookedWork third = cell->reserve(kBooking, kStart);
    third = std::move(second);
    EXPECT_EQ(cell->read(kStart).in_flight, 1U);
  }
  EXPECT_EQ(cell->read(kStart).in_flight, 0U);
  EXPECT_EQ(cell->read(kStart).prefill_tokens, 0U);
}

TEST(Load, RecentWorkHalvesWithTime) {
  const auto cell = std::make_shared<LoadCell>();
  static_cast<void>(cell->reserve(kBooking, kStart));
  EXPECT_DOUBLE_EQ(cell->read(kStart).recent_prefill_blocks, 10);
  EXPECT_NEAR(cell->read(kStart + kRecentHalfLife).recent_prefill_blocks, 5, 1e-9);
  static_cast<void>(cell->reserve(kBooking, kStart + kRecentHalfLife));
  EXPECT_NEAR(cell->read(kStart + 2 * kRecentHalfLife).recent_prefill_blocks, 7.5, 1e-9);
}

// The calls of an observer.
// Thread safety: note() from any thread, the rest alone.
struct Told {
  struct Entry {
    RankName rank;
    BookingId id;
    Step step;
    std::uint64_t prefill_tokens;
    bool had_first_token;
    bool operator==(const Entry&) const = default;
  };
  void note(const LoadChange& change) {
    const MutexLock lock(mutex);
    entries.push_back({change.rank, change.id, change.step, change.booking.prefill_tokens,
                       change.had_first_token});
  }
  Mutex mutex;
  std::vector<Entry> entries;
};

LoadBook::Options told_to(Told& told) {
  return {.observer = [&told](const LoadChange& change) { told.note(change); }};
}

TEST(Load, LimitsBookingsAndNeverWrapsSums) {
  const auto cell = std::make_shared<LoadCell>();
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const Booking huge{.prefill_tokens = most, .blocks = most, .block_size = 0};
  auto first = cell->reserve(huge, Instant{});
  auto second = cell->reserve(huge, Instant{});
  EXPECT_EQ(cell->own(Instant{}).prefill_tokens, 2 * kBookedMax);
  first.first_token();
  first.release();
  second.release();
  EXPECT_EQ(cell->own(Instant{}).prefill_tokens, 0U);
  EXPECT_EQ(cell->own(Instant{}).blocks, 0U);
  Load sum{.in_flight = ~0U, .prefill_tokens = most, .blocks = most};
  sum += Load{.in_flight = 1, .prefill_tokens = 1, .blocks = most};
  EXPECT_EQ(sum, (Load{.in_flight = ~0U, .prefill_tokens = most, .blocks = most}));
}

TEST(LoadBook, ObserverGetsEachStepOnceWithAmounts) {
  Told told;
  LoadBook book(told_to(told));
  const auto cell = book.open(kRank);
  const auto other = book.open(kOtherRank);
  BookedWork first = cell->reserve(kBooking, kStart);
  BookedWork second = other->reserve({.prefill_tokens = 16, .block_size = 16}, kStart);
  first.first_token();
  first.first_token();
  second.release();
  first.release();
  first.release();
  const BookingId a{1};
  const BookingId b{2};
  EXPECT_EQ(told.entries, (std::vector<Told::Entry>{{kRank, a, Step::Reserved, 160, false},
                                                    {kOtherRank, b, Step::Reserved, 16, false},
                                                    {kRank, a, Step::FirstToken, 160, false},
                                                    {kOtherRank, b, Step::Ended, 16, false},
                                                    {kRank, a, Step::Ended, 160, true}}));
}

TEST(LoadBook, ObserverSeesTheBookAfterTheChange) {
  std::shared_ptr<LoadCell> cell;
  std::vector<std::uint32_t> in_flight;
  LoadBook book(
      {.observer = [&](const LoadChange&) { in_flight.push_back(cell->own(kStart).in_flight); }});
  cell = book.open(kRank);
  cell->reserve(kBooking, kStart).release();
  EXPECT_EQ(in_flight, (std::vector<std::uint32_t>{1, 0}));
}

TEST(LoadBook, AReservationThatMovesOrIsReplacedEndsOnce) {
  Told told;
  LoadBook book(told_to(told));
  const auto cell = book.open(kRank);
  {
    BookedWork first = cell->reserve(kBooking, kStart);
    BookedWork second = std::move(first);
    BookedWork third = cell->reserve(kBooking, kStart);
    third = std::move(second);
    EXPECT_EQ(told.entries.back().step, Step::Ended);
    EXPECT_EQ(told.entries.back().id, BookingId{2});
  }
  ASSERT_EQ(told.entries.size(), 4U);
  EXPECT_EQ(told.entries.back().id, BookingId{1});
}

TEST(LoadBook, ReservationEndsOnceWithoutItsRankOrBook) {
  Told told;
  std::optional<LoadBook> book(told_to(told));
  auto cell = book->open(kRank);
  BookedWork of_gone_rank = cell->reserve(kBooking, kStart);
  BookedWork of_gone_book = cell->reserve(kBooking, kStart);
  const auto next = book->open(kRank);
  EXPECT_EQ(next->own(kStart), Load{}) << "another rank of the same name";
  EXPECT_EQ(cell->own(kStart).in_flight, 2U);
  cell.reset();
  of_gone_rank.release();
  book.reset();
  of_gone_book.first_token();
  of_gone_book.release();
  ASSERT_EQ(told.entries.size(), 5U);
  EXPECT_EQ(told.entries[2], (Told::Entry{kRank, BookingId{1}, Step::Ended, 160, false}));
  EXPECT_EQ(told.entries[4], (Told::Entry{kRank, BookingId{2}, Step::Ended, 160, true}));
  EXPECT_EQ(next->own(kStart), Load{});
}

TEST(LoadBook, BookingsOfManyThreadsEndOnceEach) {
  constexpr int kThreads = 4;
  constexpr int kTimes = 500;
  Told told;
  LoadBook book(told_to(told));
  const auto cell = book.open(kRank);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&cell, i] {
        for (int k = 0; k < kTimes; ++k) {
          BookedWork reservation = cell->reserve(kBooking, kStart);
          if ((i + k) % 2 == 0) reservation.first_token();
        }
      });
    }
  }
  EXPECT_EQ(cell->own(kStart).in_flight, 0U);
  EXPECT_EQ(cell->own(kStart).prefill_tokens, 0U);
  EXPECT_EQ(cell->own(kStart).blocks, 0U);
  std::map<BookingId, std::array<int, 3>> steps;
  for (const auto& entry : told.entries) ++steps[entry.id][static_cast<std::size_t>(entry.step)];
  EXPECT_EQ(steps.size(), std::size_t{kThreads * kTimes});
  for (const auto& [id, counts] : steps) {
    EXPECT_EQ(counts[0], 1);
    EXPECT_EQ(counts[2], 1);
  }
}

TEST(LoadBook, OthersLoadAddsToTheWeightNotTheOwn) {
  LoadBook book({});
  const auto cell = book.open(kRank);
  const BookedWork reservation = cell->reserve(kBooking, kStart);
  const Load theirs{.in_flight = 2, .prefill_tokens = 40, .blocks = 7, .recent_prefill_blocks = 4};
  EXPECT_TRUE(book.set_others("a", kRank, theirs, kStart));
  EXPECT_TRUE(book.set_others("b", kRank, theirs, kStart));
  EXPECT_EQ(cell->read(kStart), (Load{5, 240, 14, 18}));
  EXPECT_EQ(cell->own(kStart), (Load{1, 160, 0, 10}));
  EXPECT_TRUE(book.set_others("a", kRank, {.in_flight = 1}, kStart));
  EXPECT_EQ(cell->read(kStart), (Load{4, 200, 7, 14})) << "in place of what it told before";
  EXPECT_TRUE(book.set_others("b", kRank, {}, kStart));
  EXPECT_EQ(cell->read(kStart), (Load{2, 160, 0, 10}));
}

TEST(LoadBook, RecentWorkOfOthersHalvesWithTimeToo) {
  LoadBook book({.source_timeout = 3600s});
  const auto cell = book.open(kRank);
  EXPECT_TRUE(book.set_others("a", kRank, {.recent_prefill_blocks = 4}, kStart));
  EXPECT_NEAR(cell->read(kStart + kRecentHalfLife).recent_prefill_blocks, 2, 1e-9);
}

TEST(LoadBook, ForgetsASilentSourceWithItsLoad) {
  LoadBook book({.source_timeout = 5s});
  const auto cell = book.open(kRank);
  const auto other = book.open(kOtherRank);
  EXPECT_TRUE(book.set_others("a", kRank, {.in_flight = 1}, kStart));
  EXPECT_TRUE(book.set_others("a", kOtherRank, {.in_flight = 1}, kStart + 3s));
  EXPECT_EQ(cell->read(kStart + 7s).in_flight, 1U) << "heard of elsewhere";
  EXPECT_TRUE(book.hear("a", kStart + 7s));
  EXPECT_EQ(cell->read(kStart + 12s - 1ms).in_flight, 1U);
  EXPECT_EQ(cell->read(kStart + 12s).in_flight, 0U);
  EXPECT_EQ(other->read(kStart + 12s).in_flight, 0U);
  EXPECT_FALSE(book.hear("a", kStart + 12s)) << "it is to tell all again";
  EXPECT_TRUE(book.set_others("a", kRank, {.in_flight = 3}, kStart + 13s));
  EXPECT_EQ(cell->read(kStart + 13s).in_flight, 3U);
  EXPECT_EQ(other->read(kStart + 13s).in_flight, 0U) << "what it told before does not come back";
}

TEST(LoadBook, LeavingSourceRemovesItsLoad) {
  LoadBook book({});
  const auto cell = book.open(kRank);
  EXPECT_TRUE(book.set_others("a", kRank, {.in_flight = 1}, kStart));
  EXPECT_TRUE(book.set_others("b", kRank, {.in_flight = 2}, kStart));
  book.forget("a");
  book.forget("nobody");
  EXPECT_EQ(cell->read(kStart).in_flight, 2U);
  EXPECT_FALSE(book.hear("a", kStart));
}

TEST(LoadBook, OthersLoadBelongsToExistingRanksAndSurvivesARestart) {
  LoadBook book({});
  EXPECT_FALSE(book.set_others("a", kRank, {.in_flight = 1}, kStart));
  auto cell = book.open(kRank);
  EXPECT_TRUE(book.set_others("a", kRank, {.in_flight = 1}, kStart));
  const auto next = book.open(kRank);
  EXPECT_EQ(next->read(kStart).in_flight, 1U);
  EXPECT_TRUE(book.set_others("a", kRank, {.in_flight = 4}, kStart));
  EXPECT_EQ(next->read(kStart).in_flight, 4U);
  EXPECT_FALSE(book.set_others("a", kOtherRank, {.in_flight = 1}, kStart));
}

TEST(LoadBook, SourcesBeyondTheLimitAreRefusedUntilOneIsGone) {
  LoadBook book({.source_timeout = 5s});
  const auto cell = book.open(kRank);
  for (std::size_t i = 0; i < kLoadSourcesMax; ++i) {
    EXPECT_TRUE(book.set_others(std::to_string(i), kRank, {.in_flight = 1}, kStart));
  }
  EXPECT_FALSE(book.set_others("more", kRank, {.in_flight = 1}, kStart));
  EXPECT_EQ(cell->read(kStart).in_flight, kLoadSourcesMax);
  EXPECT_TRUE(book.set_others("more", kRank, {.in_flight = 1}, kStart + 5s));
  EXPECT_EQ(cell->read(kStart + 5s).in_flight, 1U);
}

// A router with two ranks that sends each change to its peer, as replicas do. The peer adds up the
// changes and uses the sum for its cost.
struct Router {
  explicit Router(std::string own_name)
      : name(std::move(own_name)),
        book({.observer = [this](const LoadChange& change) { tell(change); }}),
        cells{book.open(kRank), book.open(kOtherRank)} {}

  void tell(const LoadChange& change) const {
    if (peer != nullptr) peer->hear(name, change, *now);
  }
  void hear(const std::string& source, const LoadChange& change, Instant at) {
    Load& load = theirs[change.rank];
    RecentWork& recent = their_recent[change.rank];
    const Booking& booking = change.booking;
    switch (change.step) {
      case Step::Reserved:
        ++load.in_flight;
        load.prefill_tokens += booking.prefill_tokens;
        recent.add(booking.prefill_blocks(), at);
        break;
      case Step::FirstToken:
        load.prefill_tokens -= booking.prefill_tokens;
        load.blocks += booking.blocks;
        break;
      case Step::Ended:
        --load.in_flight;
        (change.had_first_token ? load.blocks : load.prefill_tokens) -=
            change.had_first_token ? booking.blocks : booking.prefill_tokens;
    }
    load.recent_prefill_blocks = recent.at(at);
    EXPECT_TRUE(book.set_others(source, change.rank, load, at));
  }

  std::string name;
  Router* peer = nullptr;
  const Instant* now = nullptr;
  std::map<RankName, Load> theirs;
  std::map<RankName, RecentWork> their_recent;
  LoadBook book;
  std::array<std::shared_ptr<LoadCell>, 2> cells;
};

TEST(LoadBook, TwoBooksThatExchangeChangesWeighTheSame) {
  Instant now = kStart;
  Router a("a");
  Router b("b");
  a.peer = &b;
  b.peer = &a;
  a.now = b.now = &now;
  Rng rng(7);
  std::vector<BookedWork> open;
  for (int i = 0; i < 2'000; ++i) {
    now += std::chrono::milliseconds(rng.below(100));
    const std::uint64_t dice = rng.below(3);
    if (dice == 0 || open.empty()) {
      const Router& router = rng.below(2) == 0 ? a : b;
      const Booking booking{.prefill_tokens = rng.below(5'000), .blocks = rng.below(300)};
      open.push_back(router.cells.at(rng.below(2))->reserve(booking, now));
    } else if (dice == 1) {
      open[rng.below(static_cast<std::uint32_t>(open.size()))].first_token();
    } else {
      std::swap(open[rng.below(static_cast<std::uint32_t>(open.size()))], open.back());
      open.pop_back();
    }
    for (const std::size_t rank : {0U, 1U}) {
      const Load at_a = a.cells.at(rank)->read(now);
      const Load at_b = b.cells.at(rank)->read(now);
      ASSERT_EQ(at_a.in_flight, at_b.in_flight);
      ASSERT_EQ(at_a.prefill_tokens, at_b.prefill_tokens);
      ASSERT_EQ(at_a.blocks, at_b.blocks);
      ASSERT_NEAR(at_a.recent_prefill_blocks, at_b.recent_prefill_blocks, 1e-6);
    }
  }
  open.clear();
  EXPECT_EQ(a.cells[0]->read(now).in_flight, 0U);
  EXPECT_EQ(b.cells[1]->read(now).in_flight, 0U);
}

}  // namespace
}  // namespace sightline::fleet
