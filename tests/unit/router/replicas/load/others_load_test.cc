// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load/others_load.h"

#include <gtest/gtest.h>

#include "common/base/json.h"

namespace sightline::load {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""ns;

constexpr Instant kStart{1'000s};
constexpr std::uint64_t kMe = 1;
constexpr std::uint64_t kOther = 2;
const fleet::RankName kRank{"w", 0};
const fleet::RankName kOtherRank{"w", 1};

RankLoad work(const fleet::RankName& rank, std::uint32_t requests) {
  return {.rank = rank, .load = {.in_flight = requests, .prefill_tokens = 10 * requests}};
}

class OthersLoadTest : public ::testing::Test {
 protected:
  // Makes all calls to the book that are due. Returns the requests.
  std::vector<LoadAsk> turn(Instant now) {
    auto turn = others_.turn(now);
    for (const BookCall& call : turn.calls) {
      if (const auto* set = std::get_if<SetOthers>(&call)) {
        book_.set_others(set->source, set->told.rank, set->told.load, now);
      } else if (const auto* heard = std::get_if<HearSource>(&call)) {
        book_.hear(heard->source, now);
      } else {
        book_.forget(std::get<ForgetSource>(call).source);
      }
    }
    return turn.asks;
  }
  std::vector<LoadAsk> hear(const LoadReport& told, Instant now) {
    others_.hear(told, now);
    return turn(now);
  }
  // Part `number` of a snapshot that answers our asks.
  [[nodiscard]] LoadReport answer(std::uint64_t seq, std::vector<RankLoad> ranks,
                                  SnapshotPart part = {}) const {
    part.nonces = {nonce_};
    return {.instance = kOther, .name = "r2", .seq = seq, .snapshot = part, .ranks = ranks};
  }
  static LoadReport told(std::uint64_t seq, std::vector<RankLoad> ranks) {
    return {.instance = kOther, .name = "r2", .seq = seq, .snapshot = {}, .ranks = ranks};
  }
  static LoadReport snapshot(std::uint64_t seq, std::vector<RankLoad> ranks,
                             SnapshotPart part = {}) {
    return {.instance = kOther, .name = "r2", .seq = seq, .snapshot = part, .ranks = ranks};
  }
  // Requests all load, and accepts the other router's answer.
  void believe(std::uint64_t seq, std::vector<RankLoad> ranks) {
    turn(kStart);
    hear(answer(seq, std::move(ranks)), kStart);
    ASSERT_EQ(others_.sources(kStart).size(), 1U);
  }
  [[nodiscard]] std::uint32_t requests(Instant now) const { return cell_->read(now).in_flight; }
  [[nodiscard]] std::uint64_t left_aside(LeftAside reason) const {
    return others_.statistics().left_aside.at(static_cast<std::size_t>(reason));
  }
  [[nodiscard]] bool is_whole() const { return others_.sources(kStart).at(0).whole; }

  std::uint64_t nonce_ = 100;  // the last one drawn
  OthersLoad others_{kMe, [this] { return ++nonce_; }};
  fleet::LoadBook book_{{.source_timeout = OthersOptions{}.silent_after}};
  std::shared_ptr<fleet::LoadCell> cell_ = book_.open(kRank);
  std::shared_ptr<fleet::LoadCell> other_cell_ = book_.open(kOtherRank);
};

TEST_F(OthersLoadTest, AsksAllTogetherAndAcceptsEachAnswer) {
  EXPECT_LE(others_.due(), kStart);
  EXPECT_EQ(turn(kStart), (std::vector<LoadAsk>{{.asker = kMe, .of = 0, .nonce = 101}}));
  EXPECT_EQ(hear(answer(8, {work(kRank, 3)}), kStart), std::vector<LoadAsk>{});
  EXPECT_EQ(requests(kStart), 3U);
  EXPECT_TRUE(is_whole());
  EXPECT_EQ(others_.statistics().believed, 1U);
  EXPECT_EQ(others_.told(kOther, kRank), work(kRank, 3).load);
  EXPECT_EQ(others_.told(kOther, kOtherRank), std::nullopt);
}

TEST_F(OthersLoadTest, AStrangerIsAskedAndDoesNotCount) {
  turn(kStart);
  const auto now = kStart + 200ms;
  EXPECT_EQ(hear(snapshot(8, {work(kRank, 3)}), now).size(), 1U);
  EXPECT_EQ(hear(told(9, {work(kRank, 3)}), now).size(), 0U);  // asked already
  EXPECT_EQ(requests(now), 0U);
  EXPECT_EQ(left_aside(LeftAside::Stranger), 2U);
  LoadReport guess = answer(10, {work(kRank, 3)});
  guess.snapshot->nonces = {99};
  hear(guess, now);
  EXPECT_EQ(requests(now), 0U);
  hear(answer(11, {work(kRank, 3)}), now);
  EXPECT_EQ(requests(now), 3U);
}

TEST_F(OthersLoadTest, WhoNeverAnswersIsAskedOnceASecondAtMost) {
  std::size_t asks = 0;
  for (int ms = 0; ms < 20'000; ms += 10) {
    asks += hear(told(1 + static_cast<std::uint64_t>(ms), {}), kStart + ms * 1ms).size();
  }
  EXPECT_GE(asks, 20U);
  EXPECT_LE(asks, 26U);  // 50 ms apart, doubled up to a second
}

TEST_F(OthersLoadTest, RejectsAnAnswerToAnOldRequest) {
  turn(kStart);
  const LoadReport old = answer(8, {work(kRank, 3)});
  hear(old, kStart + 3s);
  EXPECT_EQ(requests(kStart + 3s), 0U);
  EXPECT_EQ(left_aside(LeftAside::Stranger), 1U);
}

TEST_F(OthersLoadTest, RepeatedRequestKeepsItsNumberWhileYoung) {
  const auto first = turn(kStart);
  const auto again = hear(told(1, {}), kStart + 100ms);
  EXPECT_EQ(first, again);
  const auto later = hear(told(2, {}), kStart + 2s);
  ASSERT_EQ(later.size(), 1U);
  EXPECT_NE(later, first);
  // The answer to the previous request still counts.
  LoadReport late = answer(3, {work(kRank, 3)});
  late.snapshot->nonces = {first.front().nonce};
  hear(late, kStart + 2s);
  EXPECT_EQ(requests(kStart + 2s), 3U);
}

TEST_F(OthersLoadTest, LaterTotalsReplaceEarlierOnes) {
  believe(8, {work(kRank, 3), work(kOtherRank, 4)});
  hear(told(9, {work(kRank, 1)}), kStart);
  EXPECT_EQ(requests(kStart), 1U);
  EXPECT_EQ(other_cell_->read(kStart).in_flight, 4U);
  hear(told(10, {work(kRank, 0)}), kStart);
  EXPECT_EQ(requests(kStart), 0U);
  EXPECT_EQ(others_.sources(kStart).at(0).ranks, 1U);
  EXPECT_TRUE(is_whole());
}

TEST_F(OthersLoadTest, RepeatedAndReorderedWordsAreLeftAside) {
  believe(8, {});
  hear(told(9, {work(kRank, 1)}), kStart);
  hear(told(9, {work(kRank, 1)}), kStart);
  hear(told(11, {work(kRank, 3)}), kStart);
  hear(told(10, {work(kRank, 2)}), kStart);
  hear(answer(8, {work(kRank, 7)}), kStart);
  EXPECT_EQ(requests(kStart), 3U);
  EXPECT_EQ(left_aside(LeftAside::Late), 3U);
  EXPECT_EQ(others_.statistics().gaps, 1U);
}

TEST_F(OthersLoadTest, AGapIsAskedAboutUntilASnapshotIsWhole) {
  believe(8, {work(kRank, 3), work(kOtherRank, 4)});
  const auto asks = hear(told(10, {work(kRank, 1)}), kStart + 100ms);
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_EQ(asks[0].of, kOther);
  EXPECT_FALSE(is_whole());
  EXPECT_EQ(requests(kStart + 100ms), 1U);  // newer than the published one
  EXPECT_EQ(others_.due(), kStart + 150ms);
  EXPECT_TRUE(turn(kStart + 150ms - 1ns).empty());
  EXPECT_EQ(turn(kStart + 150ms).size(), 1U);
  EXPECT_EQ(others_.due(), kStart + 250ms);
  hear(snapshot(11, {work(kRank, 1)}), kStart + 160ms);
  EXPECT_TRUE(is_whole());
  EXPECT_EQ(other_cell_->read(kStart + 160ms).in_flight, 0U);
  EXPECT_TRUE(turn(kStart + 2s).empty());
}

TEST_F(OthersLoadTest, OnlyAWholeSnapshotTakesAwayWhatItDoesNotName) {
  believe(8, {work(kRank, 3), work(kOtherRank, 4)});
  const auto part = [](std::uint32_t number) { return SnapshotPart{.number = number, .count = 3}; };
  hear(snapshot(9, {}, part(0)), kStart);
  hear(snapshot(11, {work(kRank, 3)}, part(2)), kStart);
  EXPECT_EQ(other_cell_->read(kStart).in_flight, 4U);
  EXPECT_FALSE(is_whole());
  hear(snapshot(12, {}, part(0)), kStart);
  hear(snapshot(13, {work(kRank, 5)}, part(1)), kStart);
  EXPECT_EQ(other_cell_->read(kStart).in_flight, 4U);
  hear(snapshot(14, {}, part(2)), kStart);
  EXPECT_EQ(other_cell_->read(kStart).in_flight, 0U);
  EXPECT_EQ(requests(kStart), 5U);
  EXPECT_TRUE(is_whole());
  EXPECT_EQ(others_.sources(kStart).at(0).ranks, 1U);
}

TEST_F(OthersLoadTest, LaterPartCountsButDoesNotCompleteAnAnswer) {
  turn(kStart);
  hear(answer(9, {work(kRank, 3)}, {.number = 1, .count = 2}), kStart);
  EXPECT_EQ(requests(kStart), 3U);
  EXPECT_FALSE(is_whole());
  EXPECT_EQ(turn(kStart + 50ms).size(), 1U);
}

TEST_F(OthersLoadTest, ASilentRouterIsForgotten) {
  believe(8, {work(kRank, 3)});
  hear(snapshot(9, {work(kRank, 3)}), kStart + 1s);
  EXPECT_EQ(others_.due(), kStart + 4s);
  turn(kStart + 4s - 1ns);
  EXPECT_EQ(requests(kStart + 4s - 1ns), 3U);
  turn(kStart + 4s);
  EXPECT_EQ(requests(kStart), 0U);  // the book was called
  EXPECT_TRUE(others_.sources(kStart + 4s).empty());
  EXPECT_EQ(others_.statistics().silent, 1U);
}

TEST_F(OthersLoadTest, WhoComesBackAfterASilenceIsAskedFirst) {
  believe(8, {work(kRank, 3)});
  const auto back = kStart + 4s;
  EXPECT_EQ(hear(told(9, {work(kRank, 1)}), back).size(), 1U);
  EXPECT_EQ(requests(back), 0U);
  hear(answer(10, {work(kRank, 1)}), back);
  EXPECT_EQ(requests(back), 1U);
}

TEST_F(OthersLoadTest, ReplayedMessagesDoNotReviveASilentRouter) {
  believe(8, {work(kRank, 3)});
  hear(told(200, {work(kRank, 3)}), kStart + 1ms);
  const auto back = kStart + 4s;
  turn(back);
  others_.connected(back);
  turn(back);
  // Even were its number ours.
  hear(answer(100, {work(kRank, 3)}), back);
  hear(answer(200, {work(kRank, 3)}), back);
  EXPECT_EQ(requests(back), 0U);
  EXPECT_EQ(left_aside(LeftAside::Late), 2U);
  hear(answer(201, {work(kRank, 1)}), back);
  EXPECT_EQ(requests(back), 1U);
}

TEST_F(OthersLoadTest, EndedRouterIsForgottenForGood) {
  believe(8, {work(kRank, 3)});
  others_.hear(Leave{.instance = kOther}, kStart + 1s);
  EXPECT_LE(others_.due(), kStart + 1s);
  turn(kStart + 1s);
  EXPECT_EQ(requests(kStart + 1s), 0U);
  EXPECT_TRUE(hear(answer(9, {work(kRank, 3)}), kStart + 1s).empty());
  EXPECT_EQ(requests(kStart + 1s), 0U);
  EXPECT_EQ(left_aside(LeftAside::Ended), 1U);
  EXPECT_EQ(others_.statistics().ended, 1U);
}

TEST_F(OthersLoadTest, OurOwnWordsDoNotCount) {
  turn(kStart);
  LoadReport own = answer(8, {work(kRank, 3)});
  own.instance = kMe;
  EXPECT_TRUE(hear(own, kStart + 1s).empty());
  others_.hear(Leave{.instance = kMe}, kStart + 1s);
  EXPECT_EQ(requests(kStart + 1s), 0U);
  EXPECT_EQ(left_aside(LeftAside::Own), 2U);
}

TEST_F(OthersLoadTest, OurConnectionThatIsBackMakesUsAskAll) {
  believe(8, {work(kRank, 3)});
  EXPECT_TRUE(turn(kStart + 1s).empty());
  others_.connected(kStart + 1s);
  EXPECT_EQ(others_.due(), kStart + 1s);
  const auto asks = turn(kStart + 1s);
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_EQ(asks[0].of, 0U);
  // The answer closes the gap in the same moment.
  EXPECT_TRUE(hear(answer(50, {work(kRank, 1)}), kStart + 1s).empty());
  EXPECT_TRUE(is_whole());
}

TEST_F(OthersLoadTest, RequestsMissingMessagesOfEachRouterImmediately) {
  believe(8, {work(kRank, 3)});
  others_.missed(kStart + 1s);
  EXPECT_FALSE(is_whole());
  EXPECT_EQ(requests(kStart + 1s), 3U) << "it counts meanwhile";
  const auto asks = turn(kStart + 1s);
  ASSERT_EQ(asks.size(), 1U);
  EXPECT_EQ(asks[0].of, kOther);
  hear(snapshot(9, {}), kStart + 1s);
  EXPECT_TRUE(is_whole());
  EXPECT_EQ(requests(kStart + 1s), 0U);
}

TEST_F(OthersLoadTest, AcceptsTakingsOnlyOfAnsweringRouters) {
  const Takeover taken{.instance = kOther, .names = {}};
  turn(kStart);
  EXPECT_FALSE(others_.hear(taken, kStart));
  EXPECT_EQ(left_aside(LeftAside::Stranger), 1U);
  hear(answer(8, {}), kStart);
  EXPECT_TRUE(others_.hear(taken, kStart));
  EXPECT_FALSE(others_.hear(Takeover{.instance = kMe, .names = {}}, kStart));
  EXPECT_EQ(left_aside(LeftAside::Own), 1U);
  others_.hear(Leave{.instance = kOther}, kStart);
  EXPECT_FALSE(others_.hear(taken, kStart));
  EXPECT_EQ(left_aside(LeftAside::Ended), 1U);
}

TEST_F(OthersLoadTest, NextSnapshotLoadsARankThatBeginsHere) {
  const fleet::RankName late{"late", 0};
  believe(8, {work(late, 3)});
  const auto cell = book_.open(late);
  EXPECT_EQ(cell->read(kStart).in_flight, 0U);
  hear(snapshot(9, {work(late, 3)}), kStart + 1s);
  EXPECT_EQ(cell->read(kStart + 1s).in_flight, 3U);
}

TEST_F(OthersLoadTest, AWordOnOneRankKeepsTheOthersAlive) {
  believe(8, {work(kRank, 3), work(kOtherRank, 4)});
  hear(told(9, {work({"unknown here", 0}, 1)}), kStart + 2s);
  turn(kStart + 4s);
  EXPECT_EQ(requests(kStart + 4s), 3U);
}

TEST(OthersLoad, MoreRoutersThanThereIsRoomForAreLeftAside) {
  std::uint64_t nonce = 0;
  OthersLoad others(kMe, [&] { return ++nonce; }, {.sources_max = 3});
  others.turn(kStart);
  for (std::uint64_t i = 0; i < 10; ++i) {
    LoadReport told{.instance = 10 + i, .seq = 1, .snapshot = SnapshotPart{.nonces = {nonce}}};
    others.hear(told, kStart + 1s);
  }
  EXPECT_EQ(others.sources(kStart + 1s).size(), 3U);
  EXPECT_EQ(others.statistics().left_aside.at(static_cast<std::size_t>(LeftAside::NoRoom)), 7U);
  EXPECT_TRUE(others.turn(kStart + 1s).asks.empty());  // asking would not make room
}

TEST(OthersLoad, DropsAndShowsRanksAboveTheLimit) {
  std::uint64_t nonce = 0;
  OthersLoad others(kMe, [&] { return ++nonce; }, {.ranks_max = 3});
  others.turn(kStart);
  LoadReport told{
      .instance = kOther, .name = "r\"2", .seq = 1, .snapshot = SnapshotPart{.nonces = {nonce}}};
  for (std::uint32_t i = 0; i < 10; ++i) told.ranks.push_back(work({"w", i}, 1));
  others.hear(told, kStart);
  ASSERT_EQ(others.sources(kStart).size(), 1U);
  EXPECT_EQ(others.sources(kStart)[0].ranks, 3U);
  EXPECT_TRUE(others.sources(kStart)[0].capped);
  EXPECT_EQ(others.statistics().left_aside.at(static_cast<std::size_t>(LeftAside::NoRanks)), 7U);
  const auto json = others.json(kStart + 250ms);
  EXPECT_EQ(json, R"([{"name":"r\"2","instance":"0000000000000002","whole":true,"capped":true,)"
                  R"("ranks":3,"requests":3,"prefill_tokens":30,"blocks":0,"heard_ms":250}])");
  EXPECT_TRUE(json::Document::parse(json).ok());
  told.seq = 2;
  told.ranks.resize(2);
  others.hear(told, kStart);
  EXPECT_FALSE(others.sources(kStart)[0].capped);
}

TEST(OthersLoad, EveryReasonHasAName) {
  for (std::size_t i = 0; i < kLeftAsideCount; ++i) {
    EXPECT_FALSE(name_of(static_cast<LeftAside>(i)).empty());
  }
}

}  // namespace
}  // namespace sightline::load
