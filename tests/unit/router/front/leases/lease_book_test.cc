// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/leases/lease_book.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::leases {
namespace {

using std::chrono::seconds;
using State = LeaseBook::NameState::State;
using Outcome = LeaseBook::Added::Outcome;

constexpr Instant kStart{seconds(1000)};

Name named(std::uint64_t number, std::uint32_t attempt = 0) { return {"f", number, attempt}; }

LeaseBook::Renewed renew(LeaseBook& book, std::uint64_t up_to,
                         const std::vector<LeaseBook::Listed>& open, Instant now = kStart) {
  return book.renew({.instance = "f", .from = 0, .up_to = up_to, .open = open}, now);
}

TEST(LeaseNames, ReadsNamesThatItWrote) {
  for (const Name& name :
       {Name{"host:8000-1f", 7, 1}, Name{"a.b.3", ~0ULL, ~0U}, Name{"1", 0, 0}}) {
    EXPECT_EQ(parse_name(text_of(name)), name);
  }
}

TEST(LeaseNames, RefusesTextThatIsNoName) {
  for (const char* text : {"", "f", "f.1", ".1.0", "f.1.", "f..0", "f.-1.0", "f.1.4294967296",
                           "f.18446744073709551616.0", "f/g.1.0", "f g.1.0", "f.1.0x"}) {
    EXPECT_EQ(parse_name(text), std::nullopt) << text;
  }
  EXPECT_TRUE(parse_name(std::string(kInstanceBytesMax, 'x') + ".1.0"));
  EXPECT_FALSE(parse_name(std::string(kInstanceBytesMax + 1, 'x') + ".1.0"));
}

TEST(LeaseBook, BooksTheSameNameOnce) {
  LeaseBook book;
  EXPECT_EQ(book.add(named(1), 10, {}, kStart).outcome, Outcome::Booked);
  const auto again = book.add(named(1), 11, {}, kStart);
  EXPECT_EQ(again.outcome, Outcome::Open);
  EXPECT_EQ(again.open, 10U);
  EXPECT_EQ(book.find(named(1)).lease, 10U);
  EXPECT_EQ(book.open(), 1U);
}

TEST(LeaseBook, LaterAttemptReplacesTheEarlier) {
  LeaseBook book;
  static_cast<void>(book.add(named(1, 0), 10, {}, kStart));
  const auto later = book.add(named(1, 1), 11, {}, kStart);
  EXPECT_EQ(later.ended, 10U);
  EXPECT_EQ(book.add(named(1, 0), 12, {}, kStart).outcome, Outcome::Over);
  EXPECT_EQ(book.release(named(1, 0), kStart), std::nullopt);
  EXPECT_EQ(book.open(), 1U);
  EXPECT_EQ(book.release(named(1, 1), kStart), 11U);
}

TEST(LeaseBook, ReleaseMayComeTwiceOrBeforeTheLease) {
  LeaseBook book;
  static_cast<void>(book.add(named(1), 10, {}, kStart));
  EXPECT_EQ(book.release(named(1), kStart), 10U);
  EXPECT_EQ(book.release(named(1), kStart), std::nullopt);
  EXPECT_EQ(book.release(named(2), kStart), std::nullopt);
  EXPECT_EQ(book.add(named(2), 20, {}, kStart).outcome, Outcome::Over);
  EXPECT_EQ(book.open(), 0U);
}

TEST(LeaseBook, ListEndsUnlistedLeasesAndReportsMissingOnes) {
  LeaseBook book;
  for (std::uint64_t i = 1; i <= 4; ++i) static_cast<void>(book.add(named(i), i, {}, kStart));
  static_cast<void>(book.release(named(5), kStart));
  const auto renewed = renew(book, 6, {{2, 0}, {5, 0}, {6, 0}, {4, 1}});
  EXPECT_EQ(renewed.ended, (std::vector<LeaseId>{1, 3}));
  EXPECT_EQ(renewed.missing, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(book.add(named(1), 9, {}, kStart).outcome, Outcome::Over) << "it came late";
}

TEST(LeaseBook, ListKeepsLeasesAboveItsLastNumber) {
  LeaseBook book;
  for (std::uint64_t i = 1; i <= 3; ++i) static_cast<void>(book.add(named(i), i, {}, kStart));
  EXPECT_EQ(renew(book, 2, {}).ended, (std::vector<LeaseId>{1, 2}));
  EXPECT_EQ(book.find(named(3)).state, State::Open);
}

TEST(LeaseBook, SilenceEndsLeasesUntilTheInstanceReturns) {
  LeaseBook book;
  static_cast<void>(book.add(named(1), 1, {}, kStart));
  static_cast<void>(book.add({"g", 1, 0}, 2, {}, kStart));
  book.hear("g", kStart + seconds(10));
  EXPECT_TRUE(book.expire(kStart + seconds(14)).empty());
  EXPECT_EQ(book.expire(kStart + seconds(15)), (std::vector<LeaseId>{1}));
  EXPECT_EQ(renew(book, 1, {{1, 0}}, kStart + seconds(16)).missing.size(), 1U);
  EXPECT_EQ(book.add(named(1), 3, {}, kStart + seconds(16)).outcome, Outcome::Booked);
}

TEST(LeaseBook, LeaseWithOwnEndIgnoresSilenceAndLists) {
  LeaseBook book;
  static_cast<void>(book.add(named(1), 1, kStart + seconds(40), kStart));
  EXPECT_TRUE(renew(book, 9, {}).ended.empty());
  EXPECT_TRUE(book.expire(kStart + seconds(39)).empty());
  EXPECT_EQ(book.expire(kStart + seconds(40)), (std::vector<LeaseId>{1}));
}

TEST(LeaseBook, ForgetsReleasesByAgeAndByCount) {
  LeaseBook book({.released_max = 2});
  for (std::uint64_t i = 1; i <= 3; ++i) static_cast<void>(book.release(named(i), kStart));
  EXPECT_EQ(book.released(), 2U);
  EXPECT_EQ(book.find(named(1)).state, State::Free);
  EXPECT_EQ(book.find(named(3)).state, State::Over);
  static_cast<void>(book.expire(kStart + seconds(60)));
  EXPECT_EQ(book.find(named(3)).state, State::Free);
  EXPECT_EQ(book.released(), 0U);
}

TEST(LeaseBook, RefusesLeasesBeyondItsLimits) {
  LeaseBook book({.leases_max = 3, .instances_max = 2});
  EXPECT_EQ(book.add({"a", 1, 0}, 1, {}, kStart).outcome, Outcome::Booked);
  EXPECT_EQ(book.add({"b", 1, 0}, 2, {}, kStart).outcome, Outcome::Booked);
  EXPECT_EQ(book.add({"c", 1, 0}, 3, {}, kStart).outcome, Outcome::Full);
  EXPECT_EQ(book.add({"a", 2, 0}, 4, {}, kStart).outcome, Outcome::Booked);
  EXPECT_EQ(book.add({"a", 3, 0}, 5, {}, kStart).outcome, Outcome::Full);
  EXPECT_EQ(book.open(), 3U);
}

TEST(LeaseBook, ReleasesOfUnknownNamesTakeNoInstancePlace) {
  LeaseBook book({.instances_max = 2, .released_max = 100});
  EXPECT_EQ(book.add({"a", 1, 0}, 1, {}, kStart).outcome, Outcome::Booked);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(book.release({"made-up-" + std::to_string(i), 1, 0}, kStart), std::nullopt);
  }
  EXPECT_EQ(book.released(), 100U);
  EXPECT_EQ(book.add({"b", 1, 0}, 2, {}, kStart).outcome, Outcome::Booked);
  EXPECT_EQ(book.release({"a", 1, 0}, kStart), 1U) << "its place is free again";
  EXPECT_EQ(book.add({"c", 1, 0}, 3, {}, kStart).outcome, Outcome::Booked);
}

// Applies the rules of LeaseBook to a plain list, which it searches at each call.
class NaiveBook {
 public:
  struct Row {
    Name name;
    std::optional<LeaseId> lease;
    std::optional<Instant> own_end;
    Instant released{};
  };
  Row* row(const Name& name) {
    for (Row& r : rows) {
      if (r.name.instance == name.instance && r.name.number == name.number) return &r;
    }
    return nullptr;
  }
  State state(const Name& name) {
    const Row* r = row(name);
    if (r == nullptr || r->name.attempt < name.attempt) return State::Free;
    return r->name.attempt == name.attempt && r->lease ? State::Open : State::Over;
  }
  void drop(const Name& name) {
    std::erase_if(rows, [&](const Row& r) {
      return r.name.instance == name.instance && r.name.number == name.number;
    });
  }
  bool add(const Name& name, LeaseId lease, std::optional<Instant> own_end, Instant now) {
    if (state(name) != State::Free) return false;
    if (const Row* r = row(name); r != nullptr && r->lease) ended.insert(*r->lease);
    drop(name);
    rows.push_back({name, lease, own_end, {}});
    heard[name.instance] = now;
    return true;
  }
  void release(const Name& name, Instant now) {
    heard[name.instance] = now;
    const Row* r = row(name);
    if (r != nullptr && r->name.attempt > name.attempt) return;
    if (r != nullptr && r->name.attempt == name.attempt && !r->lease) return;
    if (r != nullptr && r->lease) ended.insert(*r->lease);
    drop(name);
    rows.push_back({name, {}, {}, now});
  }
  void renew(const LeaseBook::List& list, Instant now) {
    const std::string instance(list.instance);
    heard[instance] = now;
    const auto listed = [&](std::uint64_t number) {
      const auto& open = list.open;
      return std::any_of(open.begin(), open.end(), [&](auto l) { return l.number == number; });
    };
    for (Row& r : rows) {
      const std::uint64_t number = r.name.number;
      if (r.name.instance != instance || number < list.from || number > list.up_to) continue;
      if (!r.lease || r.own_end || listed(number)) continue;
      ended.insert(*r.lease);
      r.lease.reset();
      r.released = now;
    }
  }
  void expire(Instant now) {
    std::erase_if(rows, [&](const Row& r) {
      if (!r.lease) return now - r.released >= seconds(60);
      const bool over = r.own_end ? *r.own_end <= now : now - heard[r.name.instance] >= seconds(15);
      if (over) ended.insert(*r.lease);
      return over;
    });
  }

  std::vector<Row> rows;
  std::map<std::string, Instant> heard;
  std::set<LeaseId> ended;
};

class RandomCalls : public testing::TestWithParam<std::uint64_t> {
 protected:
  Name any_name() { return {rng.below(2) == 0 ? "f" : "g", rng.below(12), rng.below(3)}; }
  void add() {
    const Name name = any_name();
    std::optional<Instant> own_end;
    if (rng.below(4) == 0) own_end = now + seconds(rng.below(40));
    const LeaseId lease = next++;
    const auto added = book.add(name, lease, own_end, now);
    ASSERT_EQ(added.outcome == Outcome::Booked, naive.add(name, lease, own_end, now));
    if (added.ended) note({*added.ended});
  }
  void renew() {
    const std::string instance = rng.below(2) == 0 ? "f" : "g";
    const std::uint64_t from = rng.below(6);
    const std::uint64_t up_to = from + rng.below(8);
    std::vector<LeaseBook::Listed> open;
    for (std::uint64_t i = from; i <= up_to; ++i) {
      if (rng.below(2) == 0) open.push_back({i, rng.below(3)});
    }
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const Name name{instance, open[i].number, open[i].attempt};
      if (naive.state(name) == State::Free) missing.push_back(i);
    }
    const LeaseBook::List list{instance, from, up_to, open};
    const auto renewed = book.renew(list, now);
    naive.renew(list, now);
    ASSERT_EQ(renewed.missing, missing);
    note(renewed.ended);
  }
  void note(const std::vector<LeaseId>& leases) {
    for (const LeaseId lease : leases) EXPECT_TRUE(ended.insert(lease).second) << "ended twice";
  }

  Rng rng{GetParam()};
  LeaseBook book;
  NaiveBook naive;
  Instant now = kStart;
  LeaseId next = 1;
  std::set<LeaseId> ended;
};

INSTANTIATE_TEST_SUITE_P(Seeds, RandomCalls, testing::Range<std::uint64_t>(1, 9));

TEST_P(RandomCalls, AgreeWithThePlainList) {
  for (int step = 0; step < 20'000; ++step) {
    const std::uint32_t kind = rng.below(10);
    if (kind < 4) {
      add();
    } else if (kind < 7) {
      const Name name = any_name();
      if (const auto lease = book.release(name, now)) note({*lease});
      naive.release(name, now);
    } else if (kind < 8) {
      renew();
    } else {
      now += seconds(rng.below(7));
      note(book.expire(now));
      naive.expire(now);
    }
    ASSERT_EQ(ended, naive.ended) << "step " << step;
    const Name name = any_name();
    ASSERT_EQ(book.find(name).state, naive.state(name)) << "step " << step;
    const auto open = std::count_if(naive.rows.begin(), naive.rows.end(),
                                    [](const auto& row) { return row.lease.has_value(); });
    ASSERT_EQ(book.open(), static_cast<std::size_t>(open));
  }
}

}  // namespace
}  // namespace sightline::leases
