// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load/own_load.h"

#include <gtest/gtest.h>

#include "router/workers/fleet/load_book.h"

namespace sightline::load {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""ns;

constexpr Instant kStart{1'000s};
constexpr fleet::Booking kBooking{.prefill_tokens = 160, .blocks = 12, .block_size = 16};

std::vector<LoadReport> read(const std::vector<std::string>& messages) {
  std::vector<LoadReport> told;
  for (const std::string& bytes : messages) {
    const auto message = decode(bytes);
    EXPECT_TRUE(message.ok());
    told.push_back(std::get<LoadReport>(*message));
  }
  return told;
}

class OwnLoadTest : public ::testing::Test {
 protected:
  std::vector<LoadReport> turn(Instant now) { return read(own_.turn(now)); }
  // The one message due now.
  LoadReport told(Instant now) {
    const auto all = turn(now);
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? LoadReport{} : all.front();
  }
  fleet::BookedWork book(Instant now, const fleet::RankName& rank = {"w", 0}) {
    now_ = now;
    return book_.open(rank)->reserve(kBooking, now);
  }

  Instant now_ = kStart;
  OwnLoad own_{1, "r1"};
  fleet::LoadBook book_{{.observer = [this](const fleet::LoadChange& c) { own_.take(c, now_); }}};
};

TEST_F(OwnLoadTest, BeginsWithASnapshot) {
  const LoadReport first = told(kStart);
  EXPECT_EQ(
      first,
      (LoadReport{.instance = 1, .name = "r1", .seq = 1, .snapshot = SnapshotPart{}, .ranks = {}}));
  EXPECT_TRUE(turn(kStart + 1s - 1ns).empty());
  EXPECT_EQ(own_.due(), kStart + 1s);
  EXPECT_EQ(told(kStart + 1s).seq, 2U);
}

TEST_F(OwnLoadTest, EachStepPublishesTheTotalOfItsRank) {
  turn(kStart);
  auto first = book(kStart + 100ms);
  auto second = book(kStart + 100ms);
  LoadReport now = told(kStart + 100ms);
  EXPECT_FALSE(now.snapshot);
  EXPECT_EQ(
      now.ranks,
      (std::vector<RankLoad>{
          {.rank = {"w", 0},
           .load = {
               .in_flight = 2, .prefill_tokens = 320, .blocks = 0, .recent_prefill_blocks = 20}}}));
  first.first_token();
  EXPECT_EQ(told(kStart + 200ms).ranks.at(0).load.prefill_tokens, 160U);
  second.release();  // without a first token
  now = told(kStart + 300ms);
  EXPECT_EQ(now.ranks.at(0).load.in_flight, 1U);
  EXPECT_EQ(now.ranks.at(0).load.prefill_tokens, 0U);
  EXPECT_EQ(now.ranks.at(0).load.blocks, 12U);
  first.release();
  now = told(kStart + 400ms);
  EXPECT_EQ(now.ranks.at(0).load.in_flight, 0U);
  EXPECT_EQ(now.ranks.at(0).load.blocks, 0U);
  EXPECT_EQ(now.seq, 5U);
}

TEST_F(OwnLoadTest, FirstChangeIsSentImmediatelyAndLaterOnesTogether) {
  turn(kStart);
  std::vector<fleet::BookedWork> held;
  held.push_back(book(kStart + 100ms, {"a", 0}));
  EXPECT_LE(own_.due(), kStart + 100ms);
  EXPECT_EQ(turn(kStart + 100ms).size(), 1U);
  held.push_back(book(kStart + 101ms, {"a", 0}));
  held.push_back(book(kStart + 102ms, {"b", 1}));
  EXPECT_EQ(own_.due(), kStart + 105ms);
  EXPECT_TRUE(turn(kStart + 105ms - 1ns).empty());
  const LoadReport both = told(kStart + 105ms);
  ASSERT_EQ(both.ranks.size(), 2U);
  EXPECT_EQ(both.ranks[0].load.in_flight, 2U);
  EXPECT_EQ(both.ranks[1].rank, (fleet::RankName{"b", 1}));
}

TEST_F(OwnLoadTest, AnswersARequestWithItsNumberAndAllRanks) {
  turn(kStart);
  const auto one = book(kStart + 100ms, {"a", 0});
  const auto other = book(kStart + 100ms, {"b", 0});
  turn(kStart + 100ms);
  own_.asked({.asker = 2, .of = 0, .nonce = 77});
  const LoadReport answer = told(kStart + 101ms);
  ASSERT_TRUE(answer.snapshot);
  EXPECT_EQ(answer.snapshot->nonces, std::vector<std::uint64_t>{77});
  EXPECT_EQ(answer.ranks.size(), 2U);
  // No later snapshot says it again.
  EXPECT_TRUE(told(kStart + 1'101ms).snapshot->nonces.empty());
}

TEST_F(OwnLoadTest, SnapshotIncludesChangesWithoutRepeatingThem) {
  turn(kStart);
  const auto work = book(kStart + 1s);
  EXPECT_EQ(told(kStart + 1s).ranks.size(), 1U);
  EXPECT_TRUE(turn(kStart + 1'500ms).empty());
}

TEST_F(OwnLoadTest, AsksOfOthersInstancesAndOurOwnAreLeftAside) {
  turn(kStart);
  own_.asked({.asker = 2, .of = 3, .nonce = 77});
  own_.asked({.asker = 1, .of = 0, .nonce = 77});
  EXPECT_TRUE(turn(kStart + 100ms).empty());
  own_.asked({.asker = 2, .of = 1, .nonce = 77});
  EXPECT_EQ(turn(kStart + 100ms).size(), 1U);
}

TEST_F(OwnLoadTest, ManyAsksShareASnapshot) {
  turn(kStart);
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    own_.asked({.asker = 2 + i, .of = 0, .nonce = i});
    own_.asked({.asker = 2 + i, .of = 0, .nonce = i});  // sent again
  }
  EXPECT_EQ(own_.due(), kStart + 20ms);
  EXPECT_TRUE(turn(kStart + 20ms - 1ns).empty());
  EXPECT_EQ(told(kStart + 20ms).snapshot->nonces.size(), kNoncesMax);
  EXPECT_EQ(own_.statistics().asks_left_out, 2 * (1'000 - kNoncesMax));
  own_.asked({.asker = 2, .of = 0, .nonce = 5});
  EXPECT_TRUE(turn(kStart + 21ms).empty());
  EXPECT_EQ(turn(kStart + 40ms).size(), 1U);
  EXPECT_EQ(own_.statistics().answers, 2U);
  EXPECT_EQ(own_.statistics().snapshots, 3U);
}

TEST_F(OwnLoadTest, LeavesOutAnIdleRankAfterItsRecentWork) {
  turn(kStart);
  book(kStart + 100ms).release();
  EXPECT_EQ(told(kStart + 1s).ranks.size(), 1U);  // computed lately
  EXPECT_EQ(own_.ranks(), 1U);
  EXPECT_TRUE(told(kStart + 600s).ranks.empty());
  EXPECT_EQ(own_.ranks(), 0U);
}

TEST(OwnLoad, MessagesKeepTheirSizeForAnyNames) {
  OwnLoad own(1, std::string(1'000, 'n'), {.message_bytes_max = kMessageBytesMin});
  constexpr std::uint32_t kRanks = 100;
  const auto name_of_rank = [](std::uint32_t i) {
    return fleet::RankName{std::string(i % 2 == 0 ? 5 : frames::kNameBytesMax, 'w'), i};
  };
  for (std::uint32_t i = 0; i < kRanks; ++i) {
    own.take({.rank = name_of_rank(i), .id = {}, .booking = kBooking}, kStart);
  }
  for (std::uint64_t i = 0; i < kNoncesMax; ++i) own.asked({.asker = 2, .of = 0, .nonce = i});
  const auto messages = own.turn(kStart);
  std::size_t ranks = 0;
  std::uint32_t number = 0;
  for (const LoadReport& told : read(messages)) {
    EXPECT_EQ(told.seq, number + 1);
    ASSERT_TRUE(told.snapshot);
    EXPECT_EQ(told.snapshot->number, number++);
    EXPECT_EQ(told.snapshot->count, messages.size());
    EXPECT_EQ(told.snapshot->nonces.size(), kNoncesMax);
    EXPECT_EQ(told.name, std::string(frames::kNameBytesMax, 'n'));
    ranks += told.ranks.size();
  }
  EXPECT_EQ(ranks, kRanks);
  EXPECT_GT(messages.size(), 25U);
  for (const auto& message : messages) EXPECT_LE(message.size(), kMessageBytesMin);
}

TEST(OwnLoad, ANameIsCutBetweenLetters) {
  std::string name(frames::kNameBytesMax - 1, 'n');
  OwnLoad own(1, name + "\u00e9");
  EXPECT_EQ(read(own.turn(kStart)).at(0).name, name);
}

TEST(OwnLoad, ARouterThatEndsSaysSo) {
  EXPECT_EQ(*decode(OwnLoad(5, "r").farewell()), Message(Leave{.instance = 5}));
}

}  // namespace
}  // namespace sightline::load
