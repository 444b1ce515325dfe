// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/audit/judge.h"

#include <gtest/gtest.h>

namespace sightline::audit {
namespace {

using keys::BlockKey;
using std::chrono::seconds;

constexpr EngineId kA{1};
constexpr EngineId kB{2};
const std::vector<BlockKey> kBlocks{{1}, {2}, {3}};

class JudgeTest : public testing::Test {
 protected:
  // A wrong claim decided at one second and answered and judged at the next.
  Verdict over(int second, EngineId engine = kA) {
    return judge.over({.engine = engine,
                       .blocks = kBlocks,
                       .removals = journal.position(),
                       .decided = Instant(seconds(second)),
                       .answered = Instant(seconds(second + 1))},
                      Instant(seconds(second + 1)));
  }

  index::RemovalJournal journal;
  Judge judge{journal};
};

TEST_F(JudgeTest, OneWrongClaimIsAStrikeAndTwoInARowForgetTheEngine) {
  const Verdict first = over(1);
  EXPECT_EQ(first.cause, OverCause::Unexplained);
  EXPECT_EQ(first.strikes, 1U);
  EXPECT_EQ(first.relearn, Relearn::No);
  const Verdict second = over(3);
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

TEST_F(JudgeTest, ARemovalThatWasAnnouncedExplainsTheClaimAndIsNoStrike) {
  const Claim claim{.engine = kA,
                    .blocks = kBlocks,
                    .removals = journal.position(),
                    .decided = Instant(seconds(1)),
                    .answered = Instant(seconds(2))};
  journal.removed(kA, std::vector<BlockKey>{{2}});
  const Verdict verdict = judge.over(claim, Instant(seconds(2)));
  EXPECT_EQ(verdict.cause, OverCause::Removed);
  EXPECT_EQ(over(3).strikes, 1U);
}

TEST_F(JudgeTest, ClaimsBeyondTheJournalAreNotJudged) {
  index::RemovalJournal small(1);
  Judge forgetful(small);
  small.removed(kB, kBlocks);
  const Claim claim{.engine = kA, .blocks = kBlocks, .removals = 0};
  for (int i = 0; i < 3; ++i) {
    const Verdict verdict = forgetful.over(claim, Instant(seconds(1)));
    EXPECT_EQ(verdict.cause, OverCause::Unknown);
    EXPECT_EQ(verdict.relearn, Relearn::No);
  }
}

TEST_F(JudgeTest, ClaimsDecidedByWhatWasForgottenSayNothingAboutWhatIsLearnedAnew) {
  over(1);
  ASSERT_EQ(over(10).relearn, Relearn::FromReplay);  // judged at 11
  EXPECT_EQ(over(9).cause, OverCause::Removed);
  EXPECT_EQ(over(11).cause, OverCause::Removed);
  EXPECT_EQ(over(12).strikes, 1U);
}

TEST_F(JudgeTest, WhereAReplayBroughtTheSameErrorsOnlyNewEventsAreBelieved) {
  over(1);
  ASSERT_EQ(over(3).relearn, Relearn::FromReplay);
  over(5);
  EXPECT_EQ(over(7).relearn, Relearn::FromNewEvents);
  judge.agreed(kA, Instant(seconds(9)));
  over(100);
  EXPECT_EQ(over(102).relearn, Relearn::FromReplay);
}

TEST_F(JudgeTest, AReplayIsNotBelievedAgainBeforeAPromiseWasKeptHoweverLongThatTakes) {
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

TEST_F(JudgeTest, APromiseKeptBeforeTheReplayDoesNotSpeakForIt) {
  judge.agreed(kA, Instant(seconds(1)));
  over(2);
  ASSERT_EQ(over(4).relearn, Relearn::FromReplay);
  over(100);
  EXPECT_EQ(over(102).relearn, Relearn::FromNewEvents);
}

}  // namespace
}  // namespace sightline::audit
