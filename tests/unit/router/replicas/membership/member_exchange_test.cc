// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/membership/member_exchange.h"

#include <array>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::membership {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = MemberChange::Kind;

constexpr Instant kStart{std::chrono::hours(1)};

std::string subject_of(const Announcement& a) { return a.scope + "." + a.revision; }

const envelope::Sealer& sealer() {
  static const envelope::Sealer sealer(contract::development_identity_key(),
                                       {.scope = "s", .revision = {}, .fingerprint = {}});
  return sealer;
}

Announcement announcement(std::uint64_t instance, const std::string& revision = "0") {
  Announcement a;
  a.role = Role::Agent;
  a.name = "p" + std::to_string(instance);
  a.instance = instance;
  a.scope = "s";
  a.revision = revision;
  return a;
}

class ExchangeTest : public testing::Test {
 protected:
  // Receives the next announcement of a process with the key.
  void hear(Announcement theirs, Instant now) {
    theirs.number = ++number_;
    exchange_.hear(subject_of(theirs), proven(theirs), now);
  }
  static std::string proven(const Announcement& theirs) {
    return encode(theirs, subject_of(theirs), sealer());
  }
  // The announcement in a message, without its number.
  static Announcement read(const std::string& text) {
    EXPECT_TRUE(is_proven(text, "s.0", sealer()));
    Announcement announcement = *decode(text);
    EXPECT_GT(announcement.number, 0U);
    announcement.number = 0;
    return announcement;
  }
  // The number of announcements in the turns of each millisecond.
  std::size_t announcements(Instant from, Instant to) {
    std::size_t count = 0;
    for (Instant now = from; now < to; now += milliseconds(1)) {
      count += exchange_.turn(now).announcement.has_value() ? 1 : 0;
    }
    return count;
  }

  MemberExchange exchange_{announcement(1), subject_of, sealer()};
  std::uint64_t number_ = 0;
};

TEST_F(ExchangeTest, AnnouncesAtOnceAndThenAtEachInterval) {
  const auto first = exchange_.turn(kStart);
  ASSERT_TRUE(first.announcement);
  EXPECT_EQ(read(*first.announcement), announcement(1));
  EXPECT_EQ(announcements(kStart + milliseconds(1), kStart + seconds(20) + milliseconds(1)), 10U);
}

TEST_F(ExchangeTest, AnnouncesSoonAfterAJoinOrAConnection) {
  exchange_.turn(kStart);
  hear(announcement(2), kStart + milliseconds(500));
  EXPECT_TRUE(exchange_.turn(kStart + milliseconds(500)).announcement);
  exchange_.connected(kStart + milliseconds(550));
  EXPECT_FALSE(exchange_.turn(kStart + milliseconds(550)).announcement) << "the pause";
  EXPECT_EQ(exchange_.due(), kStart + milliseconds(700));
  EXPECT_TRUE(exchange_.turn(kStart + milliseconds(700)).announcement);
}

TEST_F(ExchangeTest, ThousandsOfJoinsCauseFewAnnouncements) {
  std::uint64_t instance = 2;
  std::size_t count = 0;
  for (Instant now = kStart; now < kStart + seconds(1); now += milliseconds(1)) {
    for (int i = 0; i < 5; ++i) hear(announcement(instance++), now);
    count += exchange_.turn(now).announcement.has_value() ? 1 : 0;
  }
  EXPECT_LE(count, 6U);
}

TEST_F(ExchangeTest, ReportsFewChangesPerIntervalAndCountsTheRest) {
  exchange_.turn(kStart);
  for (std::uint64_t i = 2; i < 1002; ++i) hear(announcement(i), kStart + milliseconds(1));
  EXPECT_EQ(exchange_.due(), Instant{}) << "there is something to tell";
  const auto turn = exchange_.turn(kStart + milliseconds(1));
  EXPECT_EQ(turn.changes.size(), 32U);
  EXPECT_EQ(turn.changes_left_out, 0U) << "more may come";
  EXPECT_EQ(exchange_.members().all().size(), 1000U) << "all are remembered";
  EXPECT_EQ(exchange_.turn(kStart + seconds(1)).changes_left_out, 968U);
  hear(announcement(2000), kStart + seconds(1));
  EXPECT_EQ(exchange_.turn(kStart + seconds(1)).changes.size(), 1U) << "another interval";
}

// A member that joins and leaves in turn makes two changes of two messages.
TEST_F(ExchangeTest, ReportsFurtherChangesOncePerInterval) {
  Announcement last = announcement(2);
  last.leaving = true;
  std::size_t tellings = 0;
  std::uint64_t told = 0;
  std::uint64_t left_out = 0;
  const auto take = [&](const MemberExchange::Actions& turn) {
    told += turn.changes.size();
    left_out += turn.changes_left_out;
    tellings += turn.changes_left_out > 0 ? 1 : 0;
  };
  exchange_.turn(kStart);
  for (Instant now = kStart; now < kStart + seconds(10); now += milliseconds(2)) {
    hear(announcement(2), now);
    take(exchange_.turn(now));
    hear(last, now + milliseconds(1));
    take(exchange_.turn(now + milliseconds(1)));
  }
  take(exchange_.turn(kStart + seconds(10)));
  EXPECT_LE(tellings, 10U);
  EXPECT_LE(told, 10U * 32U);
  EXPECT_EQ(told + left_out, 10'000U) << "none is forgotten";
}

TEST_F(ExchangeTest, IgnoresMalformedOrMisplacedAnnouncements) {
  exchange_.hear("s.0", "{", kStart);
  exchange_.hear("s.0", encode(announcement(2, "9")), kStart);
  exchange_.hear("s.9", encode(announcement(2)), kStart);
  EXPECT_EQ(exchange_.malformed_total(), 3U);
  EXPECT_TRUE(exchange_.members().all().empty());
  exchange_.hear("s.9", encode(announcement(2, "9")), kStart);
  EXPECT_EQ(exchange_.members().all().size(), 1U) << "of another revision: named";
}

TEST_F(ExchangeTest, ReadsFewUnprovenAndAllProvenAnnouncements) {
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    exchange_.hear("s.0", encode(announcement(1'000 + i)), kStart);
    exchange_.hear("s.0", std::string(2'000, '{'), kStart);
  }
  EXPECT_LE(exchange_.members().all().size() + exchange_.malformed_total(), 32U);
  EXPECT_GE(exchange_.unproven_total(), 10'000U - 32U);
  hear(announcement(2), kStart);
  ASSERT_TRUE(exchange_.members().all().contains(2));
  EXPECT_FALSE(exchange_.members().all().at(2).unfit);
}

TEST_F(ExchangeTest, WhatIsRecordedAndComesAgainChangesNothing) {
  Announcement theirs = announcement(2);
  theirs.number = 10;
  const std::string recorded = proven(theirs);
  exchange_.hear("s.0", recorded, kStart);
  EXPECT_FALSE(exchange_.turn(kStart).changes.empty());
  for (Instant now = kStart; now < kStart + seconds(20); now += milliseconds(2)) {
    exchange_.hear("s.0", recorded, now);
    for (const auto& change : exchange_.turn(now).changes) EXPECT_EQ(change.kind, Kind::Silent);
  }
  EXPECT_TRUE(exchange_.members().all().empty()) << "it has not been heard since";
}

TEST_F(ExchangeTest, ReportsSilentAndLeavingMembers) {
  hear(announcement(2), kStart);
  hear(announcement(3), kStart);
  exchange_.turn(kStart);
  Announcement last = announcement(2);
  last.leaving = true;
  hear(last, kStart + seconds(1));
  const auto left = exchange_.turn(kStart + seconds(1)).changes;
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].kind, Kind::Left);
  const auto silent = exchange_.turn(kStart + seconds(6)).changes;
  ASSERT_EQ(silent.size(), 1U);
  EXPECT_EQ(silent[0].kind, Kind::Silent);
}

TEST_F(ExchangeTest, AnnouncesWhatIsAnotherAndKeepsWhoItIs) {
  exchange_.turn(kStart);
  Announcement changed = announcement(77, "7");
  changed.name = "p1";
  changed.block_size = 16;
  exchange_.set_mine(changed, kStart + seconds(1));
  const auto turn = exchange_.turn(kStart + seconds(1));
  ASSERT_TRUE(turn.announcement);
  Announcement expected = announcement(1);
  expected.block_size = 16;
  expected.role = Role::Agent;
  EXPECT_EQ(read(*turn.announcement), expected);
  exchange_.set_mine(changed, kStart + milliseconds(1300));
  EXPECT_FALSE(exchange_.turn(kStart + milliseconds(1300)).announcement) << "nothing new";
}

TEST_F(ExchangeTest, AnnouncesItsOwnLeave) {
  Announcement last = announcement(1);
  last.leaving = true;
  EXPECT_EQ(read(exchange_.farewell()), last);
}

// Processes that start, end and exchange announcements over a network. It may lose a fifth of the
// messages, and double another fifth.
class Network {
 public:
  explicit Network(std::uint64_t seed) : rng_(seed) {}

  void start_or_end() {
    const std::uint32_t event = rng_.below(100);
    if (event < 2 && processes_.size() < 8) {
      processes_.push_back(
          std::make_unique<MemberExchange>(announcement(next_instance_++), subject_of, sealer()));
    } else if (event == 2 && processes_.size() > 1) {
      processes_.erase(processes_.begin() +
                       rng_.below(static_cast<std::uint32_t>(processes_.size())));
    }
  }

  void step(bool is_lossy) {
    now_ += milliseconds(50);
    for (const auto& process : processes_) {
      const auto turn = process->turn(now_);
      if (turn.announcement) send(*turn.announcement, is_lossy);
    }
  }

  void expect_all_know_who_is_there() const {
    std::set<std::uint64_t> there;
    for (const auto& process : processes_) there.insert(process->members().mine().instance);
    for (const auto& process : processes_) {
      std::set<std::uint64_t> known{process->members().mine().instance};
      for (const auto& [instance, member] : process->members().all()) known.insert(instance);
      EXPECT_EQ(known, there);
    }
  }

 private:
  void send(const std::string& message, bool is_lossy) {
    constexpr std::array kCopies = {0, 2, 1, 1, 1};
    for (const auto& process : processes_) {
      const int copies = is_lossy ? kCopies.at(rng_.below(kCopies.size())) : 1;
      for (int i = 0; i < copies; ++i) process->hear("s.0", message, now_);
    }
  }

  Rng rng_;
  Instant now_ = kStart;
  std::uint64_t next_instance_ = 1;
  std::vector<std::unique_ptr<MemberExchange>> processes_;
};

TEST(Exchanges, KnowExactlyWhoIsThereOnceTheNetworkIsQuiet) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Network network(seed);
    for (int i = 0; i < 1000; ++i) {
      network.start_or_end();
      network.step(true);
    }
    for (int i = 0; i < 8 * 20; ++i) network.step(false);
    network.expect_all_know_who_is_there();
  }
}

}  // namespace
}  // namespace sightline::membership
