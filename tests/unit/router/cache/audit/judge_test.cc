// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/audit/judge.h"

#include <gtest/gtest.h>

namespace sightline::audit {
namespace {

using keys::BlockKey;
using std::chrono::seconds;

constexpr CacheId kA{1};
constexpr CacheId kB{2};
const std::vector<BlockKey> kBlocks{{1}, {2}, {3}};

class JudgeTest : public testing::Test {
 protected:
  // A wrong claim, chosen in one second, answered and judged in the next.
  Judgement over(int second, CacheId cache = kA, std::size_t reused_blocks = 0) {
    return judge.over(
        {.cache = cache,
         .reused_blocks = reused_blocks,
         .missing = {kBlocks.begin() + static_cast<std::ptrdiff_t>(reused_blocks), kBlocks.end()},
         .row = judge.row(cache),
         .removals = journal.position(),
         .decided = Instant(seconds(second)),
         .answered = Instant(seconds(second + 1))},
        Instant(seconds(second + 1)));
  }

  index::RemovalJournal journal;
  Judge judge{journal};
};

TEST_F(JudgeTest, OneWrongClaimStrikesAndTwoInARowRelearn) {
  const Judgement first = over(1);
  EXPECT_EQ(first.cause, OverCause::Unexplained);
  EXPECT_EQ(first.strikes, 1U);
  EXPECT_EQ(first.relearn, Relearn::No);
  const Judgement second = over(3);
  EXPECT_EQ(second.strikes, 2U);
  EXPECT_EQ(second.relearn, Relearn::FromReplay);
}

TEST_F(JudgeTest, AKeptPromiseBetweenThemEndsTheRow) {
  EXPECT_EQ(over(1).strikes, 1U);
  judge.agreed(kA, Instant(seconds(3)));
  EXPECT_EQ(over(4).strikes, 1U);
  EXPECT_EQ(over(6).relearn, Relearn::FromReplay);
}

TEST_F(JudgeTest, AnotherEnginesPromisesAndStrikesDoNotCount) {
  EXPECT_EQ(over(1).strikes, 1U);
  judge.agreed(kB, Instant(seconds(3)));
  EXPECT_EQ(over(4, kB).strikes, 1U);
  EXPECT_EQ(over(5).relearn, Relearn::FromReplay);
}

TEST_F(JudgeTest, AnnouncedRemovalExplainsTheClaimWithoutAStrike) {
  const Claim claim{.cache = kA,
                    .missing = kBlocks,
                    .removals = journal.position(),
                    .decided = Instant(seconds(1)),
                    .answered = Instant(seconds(2))};
  journal.removed(kA, std::vector<BlockKey>{{2}});
  const Judgement verdict = judge.over(claim, Instant(seconds(2)));
  EXPECT_EQ(verdict.cause, OverCause::Removed);
  EXPECT_EQ(over(3).strikes, 1U);
}

TEST_F(JudgeTest, ClaimsBeyondTheJournalAreNotJudged) {
  index::RemovalJournal small({.chunks_max = 1, .chunks_per_engine_max = 1});
  Judge forgetful(small);
  const std::vector<BlockKey> others(index::RemovalJournal::kChunkRemovals + 1, BlockKey{9});
  small.removed(kA, others);
  const Claim claim{.cache = kA, .missing = kBlocks, .removals = 0};
  for (int i = 0; i < 3; ++i) {
    const Judgement verdict = forgetful.over(claim, Instant(seconds(1)));
    EXPECT_EQ(verdict.cause, OverCause::Unknown);
    EXPECT_EQ(verdict.relearn, Relearn::No);
  }
}

TEST_F(JudgeTest, ClaimsFromBeforeARelearnDoNotCount) {
  over(1);
  ASSERT_EQ(over(10).relearn, Relearn::FromReplay);  // judged at 11
  EXPECT_EQ(over(9).cause, OverCause::Removed);
  EXPECT_EQ(over(11).cause, OverCause::Removed);
  EXPECT_EQ(over(12).strikes, 1U);
}

TEST_F(JudgeTest, ReplayWithTheSameErrorsLeadsToNewEventsOnly) {
  over(1);
  ASSERT_EQ(over(3).relearn, Relearn::FromReplay);
  over(15);
  EXPECT_EQ(over(17).relearn, Relearn::FromNewEvents);
  judge.agreed(kA, Instant(seconds(19)));
  over(100);
  EXPECT_EQ(over(102).relearn, Relearn::FromReplay);
}

TEST_F(JudgeTest, ReplayIsTrustedAgainOnlyAfterAKeptPromise) {
  over(1);
  ASSERT_EQ(over(3).relearn, Relearn::FromReplay);  // judged at 4
  over(65);
  EXPECT_EQ(over(67).relearn, Relearn::FromNewEvents);
  over(1000);
  EXPECT_EQ(over(1002).relearn, Relearn::FromNewEvents);
  judge.agreed(kA, Instant(seconds(1500)));
  over(2000);
  EXPECT_EQ(over(2002).relearn, Relearn::FromReplay);
}

TEST_F(JudgeTest, EngineThatKeepsMostClaimsIsNotRelearnedAgain) {
  over(1, kA, 2);
  ASSERT_EQ(over(3, kA, 2).relearn, Relearn::FromReplay);
  EXPECT_EQ(over(5, kA, 2).cause, OverCause::Unexplained);
  const Judgement settled = over(7, kA, 2);
  EXPECT_EQ(settled.cause, OverCause::NotReused);
  EXPECT_EQ(settled.relearn, Relearn::No);
  EXPECT_GT(settled.strikes, 0U) << "said once";
  for (int second = 9; second < 1000; second += 2) {
    const Judgement later = over(second, kA, 2);
    ASSERT_EQ(later.cause, OverCause::NotReused);
    ASSERT_EQ(later.relearn, Relearn::No);
    ASSERT_EQ(later.strikes, 0U);
  }
}

TEST_F(JudgeTest, MostlyBrokenClaimsStillRelearnThatEngine) {
  for (const int second : {1, 3, 5, 7}) over(second, kA, 2);
  ASSERT_EQ(over(9, kA, 2).cause, OverCause::NotReused);
  EXPECT_EQ(over(11).cause, OverCause::Unexplained);
  ASSERT_EQ(over(13, kA, 2).cause, OverCause::NotReused);
  EXPECT_EQ(over(115).relearn, Relearn::FromNewEvents);
}

TEST_F(JudgeTest, KeptPromiseShowsFullReuse) {
  for (const int second : {1, 3, 5, 7}) over(second, kA, 2);
  ASSERT_EQ(over(9, kA, 2).cause, OverCause::NotReused);
  judge.agreed(kA, Instant(seconds(11)));
  EXPECT_EQ(over(100, kA, 2).cause, OverCause::Unexplained);
  EXPECT_EQ(over(102, kA, 2).relearn, Relearn::FromReplay);
}

TEST_F(JudgeTest, AtMostOneBlockOrHalfMayBeMissing) {
  const auto settles = [&](std::size_t blocks, std::size_t reused) {
    Judge fresh(journal);
    OverCause last = OverCause::Unexplained;
    for (int second = 1; second < 9; second += 2) {
      last = fresh
                 .over({.cache = kA,
                        .reused_blocks = reused,
                        .missing = std::vector<BlockKey>(blocks - reused, BlockKey{1}),
                        .removals = journal.position(),
                        .decided = Instant(seconds(second)),
                        .answered = Instant(seconds(second + 1))},
                       Instant(seconds(second + 1)))
                 .cause;
    }
    return last == OverCause::NotReused;
  };
  EXPECT_TRUE(settles(1, 0));
  EXPECT_TRUE(settles(10, 5));
  EXPECT_FALSE(settles(10, 4));
  EXPECT_FALSE(settles(2, 0));
}

TEST_F(JudgeTest, ARemovalOfWhatWasReusedExplainsNothing) {
  const Claim claim{.cache = kA,
                    .reused_blocks = 1,
                    .missing = {{2}, {3}},
                    .removals = journal.position(),
                    .decided = Instant(seconds(1)),
                    .answered = Instant(seconds(2))};
  journal.removed(kA, std::vector<BlockKey>{{1}});
  EXPECT_EQ(judge.over(claim, Instant(seconds(2))).cause, OverCause::Unexplained);
}

TEST_F(JudgeTest, RowFollowsTheOrderOfAnswersNotJudgements) {
  const auto answered = [&](int second) {
    return Claim{.cache = kA,
                 .missing = kBlocks,
                 .row = judge.row(kA),
                 .removals = journal.position(),
                 .decided = Instant(seconds(second)),
                 .answered = Instant(seconds(second))};
  };
  const Claim first = answered(1);
  const Claim second = answered(2);
  judge.agreed(kA, Instant(seconds(3)));
  const Claim third = answered(4);
  EXPECT_EQ(judge.over(first, Instant(seconds(5))).strikes, 1U);
  EXPECT_EQ(judge.over(second, Instant(seconds(5))).relearn, Relearn::FromReplay);
  EXPECT_EQ(judge.over(third, Instant(seconds(5))).cause, OverCause::Removed);
}

TEST_F(JudgeTest, RelearnPauseDoublesAndResetsAfterARest) {
  std::vector<int> relearned;  // seconds
  std::uint64_t postponed = 0;
  const auto go_wrong = [&](int from, int to) {
    for (int second = from; second < to; ++second) {
      const Relearn how = over(second).relearn;
      if (is_due(how)) relearned.push_back(second + 1);
      if (how == Relearn::Postponed) ++postponed;
    }
  };
  go_wrong(0, 1'000);
  const std::vector<int> begins(relearned.begin(), relearned.begin() + 4);
  EXPECT_EQ(begins, (std::vector<int>{2, 12, 32, 72}));
  EXPECT_EQ(relearned.size(), 7U) << "2 + 10 + 20 + 40 + 80 + 160 + 320 seconds";
  EXPECT_GT(postponed, 900U);
  relearned.clear();
  const int rest = 2 * static_cast<int>(kRelearnPauseMax.count());
  go_wrong(1'000 + rest, 1'000 + rest + 12);
  EXPECT_EQ(relearned.size(), 2U);
}

TEST_F(JudgeTest, OverfullEngineRelearnsWithTheSamePause) {
  EXPECT_EQ(judge.overfull(kA, Instant(seconds(1))), Relearn::FromReplay);
  EXPECT_EQ(judge.overfull(kA, Instant(seconds(6))), Relearn::Postponed);
  EXPECT_EQ(judge.overfull(kB, Instant(seconds(6))), Relearn::FromReplay);
  over(7);
  EXPECT_EQ(over(9).relearn, Relearn::Postponed);
  EXPECT_EQ(judge.overfull(kA, Instant(seconds(11))), Relearn::FromNewEvents);
}

TEST_F(JudgeTest, PromiseKeptBeforeTheReplayDoesNotCount) {
  judge.agreed(kA, Instant(seconds(1)));
  over(2);
  ASSERT_EQ(over(4).relearn, Relearn::FromReplay);
  over(100);
  EXPECT_EQ(over(102).relearn, Relearn::FromNewEvents);
}

}  // namespace
}  // namespace sightline::audit
