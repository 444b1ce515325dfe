// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/audit/audit.h"

#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/bounded_queue.h"

#include "tests/support/eventually.h"

namespace sightline::audit {
namespace {

using keys::BlockKey;

constexpr CacheId kEngine{4};
const std::vector<BlockKey> kBlocks{{1}, {2}};

class AuditTest : public testing::Test {
 protected:
  AuditTest() { audit.follow(kEngine); }

  Answered answered(std::uint64_t predicted, std::optional<std::uint64_t> actual) const {
    return {.request_id = "r",
            .worker = "a",
            .engine = kEngine,
            .predicted = predicted,
            .actual = actual,
            .blocks = kBlocks,
            .removals = journal.position(),
            .decided = system_clock().now()};
  }
  // Waits until the metric stands so in the exposition.
  testing::AssertionResult shows(const std::string& line) const {
    return test::eventually([&] { return metrics.scrape().find(line) != std::string::npos; })
               ? testing::AssertionSuccess()
               : testing::AssertionFailure() << line << " is not in\n"
                                             << metrics.scrape();
  }
  static std::string miss(const std::string& result, const std::string& cause, int count) {
    return "sightline_prediction_misses_total{worker=\"a\",result=\"" + result + "\",cause=\"" +
           cause + "\"} " + std::to_string(count);
  }

  // Everything is applied at every moment, unless a test says otherwise.
  [[nodiscard]] std::optional<Heard> heard() const {
    const std::lock_guard lock(mutex);
    if (caught_up_always && told) told->caught_up = system_clock().now();
    return told;
  }
  void tell(std::optional<Heard> now) {
    const std::lock_guard lock(mutex);
    caught_up_always = false;
    told = now;
  }
  // Both claims of a row that would have an engine learned anew.
  void go_wrong_twice() {
    for (int i = 0; i < 2; ++i) audit.compare(answered(32, 0));
  }

  index::RemovalJournal journal;
  runtime::Metrics metrics;
  std::string incomplete;
  mutable std::mutex mutex;  // guards the next four
  mutable std::optional<Heard> told{{.is_sound = true}};
  bool caught_up_always = true;
  int looks = 0;
  std::vector<Overfull> overfull;
  BoundedQueue<Relearn> relearns{8};
  Audit audit{{.announcement_delay = std::chrono::milliseconds(20),
               .look_again_after = std::chrono::milliseconds(5),
               .judged_within = std::chrono::milliseconds(200),
               .overfull_interval = std::chrono::milliseconds(5),
               .claims = {.bytes_max = 1U << 20U, .per_engine_max = 4}},
              {.journal = journal,
               .why_incomplete = [this](CacheId) { return std::string_view(incomplete); },
               .heard = [this](CacheId) { return heard(); },
               .look =
                   [this](CacheId) {
                     const std::lock_guard lock(mutex);
                     ++looks;
                   },
               .overfull =
                   [this] {
                     const std::lock_guard lock(mutex);
                     return overfull;
                   },
               .relearn = [this](CacheId, Relearn how) { relearns.push(how); }},
              metrics,
              system_clock()};
};

TEST_F(AuditTest, APredictionThatHoldsIsCountedAndNothingElseHappens) {
  audit.compare(answered(32, 32));
  EXPECT_TRUE(shows("sightline_predictions_total{worker=\"a\",result=\"equal\"} 1"));
  EXPECT_EQ(metrics.scrape().find("misses_total{"), std::string::npos);
  EXPECT_EQ(audit.tally(kEngine).equal, 1U);
}

TEST_F(AuditTest, TwoUnexplainedClaimsInARowHaveTheEngineLearnedAnew) {
  audit.compare(answered(32, 16));
  audit.compare(answered(32, 0));
  EXPECT_EQ(relearns.pop(), Relearn::FromReplay);
  EXPECT_TRUE(shows(miss("over", "unexplained", 2)));
  EXPECT_TRUE(shows("sightline_relearns_total{worker=\"a\"} 1"));
  const Tally tally = audit.tally(kEngine);
  EXPECT_EQ(tally.over, 2U);
  EXPECT_EQ(tally.unexplained, 2U);
  EXPECT_EQ(tally.relearned, 1U);
}

TEST_F(AuditTest, ClaimsThatRemovalsExplainAreCountedAsSuch) {
  const Answered early = answered(32, 0);
  journal.removed(kEngine, kBlocks);
  for (int i = 0; i < 3; ++i) audit.compare(early);
  EXPECT_TRUE(shows(miss("over", "removed", 3)));
  EXPECT_EQ(audit.tally(kEngine).unexplained, 0U);
}

TEST_F(AuditTest, AnotherPromptThanOursNeverStrikesAnEngine) {
  Answered other = answered(32, 0);
  other.same_prompt = false;
  for (int i = 0; i < 3; ++i) audit.compare(other);
  EXPECT_TRUE(shows(miss("over", "token_mismatch", 3)));
  EXPECT_EQ(audit.tally(kEngine).unexplained, 0U);
}

TEST_F(AuditTest, AnAnswerAboutAnotherPromptDoesNotEndARowOfStrikes) {
  audit.compare(answered(32, 0));
  Answered other = answered(32, 32);
  other.same_prompt = false;
  audit.compare(other);
  other.actual = 48;
  audit.compare(other);
  audit.compare(answered(32, 0));
  EXPECT_TRUE(shows("sightline_relearns_total{worker=\"a\"} 1"));
}

TEST_F(AuditTest, UnderPredictionsAreCountedByTheirCause) {
  Answered busy = answered(0, 16);
  busy.busy = true;
  audit.compare(busy);
  EXPECT_TRUE(shows(miss("under", "concurrent", 1)));
  audit.compare(answered(0, 16));
  EXPECT_TRUE(shows(miss("under", "unexplained", 1)));
  incomplete = "forgotten";
  audit.compare(answered(0, 16));
  EXPECT_TRUE(shows(miss("under", "forgotten", 1)));
  EXPECT_EQ(audit.tally(kEngine).under, 3U);
}

TEST_F(AuditTest, AnEngineThatTellsNoCountIsNotJudgedAndThatIsSeen) {
  for (int i = 0; i < 3; ++i) audit.compare(answered(32, std::nullopt));
  EXPECT_TRUE(shows("sightline_predictions_total{worker=\"a\",result=\"untold\"} 3"));
  EXPECT_EQ(audit.tally(kEngine).untold, 3U);
  EXPECT_EQ(audit.tally(kEngine).over, 0U);
}

TEST_F(AuditTest, AnEngineThatLeavesItsCountOutWhereNothingWasReusedIsJudgedByThat) {
  Answered silent = answered(32, std::nullopt);
  silent.leaves_zero_out = true;
  audit.compare(silent);  // it may not tell counts at all
  EXPECT_EQ(audit.tally(kEngine).untold, 1U);
  audit.compare(answered(32, 32));
  audit.compare(silent);
  audit.compare(silent);
  EXPECT_EQ(relearns.pop(), Relearn::FromReplay);
  EXPECT_EQ(audit.tally(kEngine).over, 2U);
  EXPECT_EQ(audit.tally(kEngine).untold, 1U);
}

TEST_F(AuditTest, AMissingCountIsNotZeroFromAnEngineThatTellsZerosOrWhoseVersionIsNotKnown) {
  audit.compare(answered(32, 32));
  audit.compare(answered(32, std::nullopt));
  audit.compare(answered(32, std::nullopt));
  EXPECT_EQ(audit.tally(kEngine).untold, 2U);
  EXPECT_EQ(audit.tally(kEngine).over, 0U);
}

TEST_F(AuditTest, AnEngineThatReusesAllButTheLastBlockIsLearnedAnewOnce) {
  for (int i = 0; i < 6; ++i) {
    audit.compare(answered(32, 16));
    // One after the other, as what is decided before the engine is learned anew does not count.
    EXPECT_TRUE(test::eventually([&] {
      const Tally tally = audit.tally(kEngine);
      return tally.unexplained + tally.not_reused == static_cast<std::uint64_t>(i + 1);
    }));
  }
  EXPECT_TRUE(shows(miss("over", "not_reused", 3)));
  EXPECT_EQ(audit.tally(kEngine).relearned, 1U);
  EXPECT_EQ(audit.tally(kEngine).not_reused, 3U);
}

TEST_F(AuditTest, NoEngineIsStruckBeforeAllThatItAnnouncedIsApplied) {
  const Instant early = system_clock().now();
  tell(Heard{.is_sound = true, .caught_up = early});
  go_wrong_twice();
  EXPECT_TRUE(test::eventually([&] {
    const std::lock_guard lock(mutex);
    return looks >= 3;
  }));
  EXPECT_EQ(audit.tally(kEngine).unexplained, 0U);
  // The removals were announced, but not read.
  journal.removed(kEngine, kBlocks);
  tell(Heard{.is_sound = true, .caught_up = system_clock().now()});
  EXPECT_TRUE(shows(miss("over", "removed", 2)));
  EXPECT_EQ(audit.tally(kEngine).unexplained, 0U);
}

TEST_F(AuditTest, ClaimsOfAnEngineThatStaysBehindAreNotJudged) {
  tell(Heard{.is_sound = true});
  go_wrong_twice();
  EXPECT_TRUE(shows(miss("over", "not_judged", 2)));
  const Tally tally = audit.tally(kEngine);
  EXPECT_EQ(tally.not_judged, 2U);
  EXPECT_EQ(tally.unexplained + tally.relearned, 0U);
}

TEST_F(AuditTest, AnEngineThatIsNotHeardIsNotJudged) {
  for (const auto& state : {std::optional<Heard>{}, std::optional<Heard>{Heard{}}}) {
    tell(state);
    const std::uint64_t before = audit.tally(kEngine).not_judged;
    go_wrong_twice();
    EXPECT_TRUE(test::eventually([&] { return audit.tally(kEngine).not_judged == before + 2; }));
  }
  EXPECT_EQ(audit.tally(kEngine).unexplained, 0U);
}

TEST_F(AuditTest, AnEngineThatIsBehindKeepsNoOtherWaiting) {
  tell(Heard{.is_sound = true});
  audit.compare(answered(32, 0));
  Answered other = answered(32, 0);
  other.worker = "b";
  other.engine = CacheId{5};
  audit.follow(other.engine);
  EXPECT_TRUE(test::eventually([&] {
    const std::lock_guard lock(mutex);
    return looks >= 1;
  }));
  tell(Heard{.is_sound = true, .caught_up = system_clock().now() + std::chrono::hours(1)});
  audit.compare(other);
  EXPECT_TRUE(shows("misses_total{worker=\"b\",result=\"over\",cause=\"unexplained\"} 1"));
}

TEST_F(AuditTest, AClaimThatIsAnUpperBoundByTheEnginesNatureIsNoStrike) {
  tell(Heard{.is_sound = true,
             .is_upper_bound = true,
             .caught_up = system_clock().now() + std::chrono::hours(1)});
  for (int i = 0; i < 20; ++i) audit.compare(answered(32, 0));
  EXPECT_TRUE(shows(miss("over", "upper_bound", 20)));
  const Tally tally = audit.tally(kEngine);
  EXPECT_EQ(tally.upper_bound, 20U);
  EXPECT_EQ(tally.unexplained + tally.relearned, 0U);
}

TEST_F(AuditTest, OneEnginesClaimsTakeNoMoreRoomThanTheirs) {
  tell(Heard{.is_sound = true});
  for (int i = 0; i < 10; ++i) audit.compare(answered(32, 0));
  EXPECT_EQ(audit.tally(kEngine).not_judged, 6U) << "four wait";
}

TEST_F(AuditTest, ClaimsBeyondTheMemoryForThemAreNotJudged) {
  tell(Heard{.is_sound = true});
  const std::vector<BlockKey> blocks(100'000, BlockKey{1});  // 800 kB of 1 MiB
  Answered large = answered(1'600'000, 0);
  large.blocks = blocks;
  audit.compare(large);
  audit.compare(large);
  EXPECT_EQ(audit.tally(kEngine).not_judged, 1U);
}

TEST_F(AuditTest, AnEngineOfWhichMoreIsClaimedThanItHasIsLearnedAnew) {
  {
    const std::lock_guard lock(mutex);
    overfull = {{kEngine, "a", 101, 100}};
  }
  EXPECT_EQ(relearns.pop(), Relearn::FromReplay);
  EXPECT_TRUE(shows("sightline_overfull_total{worker=\"a\"} 1"));
  EXPECT_TRUE(shows("sightline_relearns_total{worker=\"a\"} 1"));
  const Tally tally = audit.tally(kEngine);
  EXPECT_EQ(tally.overfull, 1U);
  EXPECT_EQ(tally.relearned_because, "overfull");
  {
    const std::lock_guard lock(mutex);
    overfull.clear();
  }
  go_wrong_twice();
  EXPECT_TRUE(shows(miss("over", "unexplained", 2)));
  EXPECT_TRUE(shows("sightline_relearns_postponed_total{worker=\"a\"} 1"));
  EXPECT_EQ(audit.tally(kEngine).relearned, 1U);
}

TEST_F(AuditTest, AnEngineThatLeftIsForgotten) {
  audit.compare(answered(32, 32));
  audit.forget(kEngine);
  EXPECT_EQ(audit.tally(kEngine).equal, 0U);
}

TEST_F(AuditTest, WhatIsAnsweredOrJudgedAfterAnEngineLeftLeavesNothingBehind) {
  audit.compare(answered(32, 0));
  audit.forget(kEngine);
  metrics.remove_worker("a");
  for (const std::uint64_t actual : {32, 48, 0}) audit.compare(answered(32, actual));
  // Judged in their order: once this one is, the first one is.
  Answered other = answered(32, 0);
  other.worker = "b";
  other.engine = CacheId{5};
  audit.follow(other.engine);
  audit.compare(other);
  EXPECT_TRUE(shows("misses_total{worker=\"b\",result=\"over\",cause=\"unexplained\"} 1"));
  EXPECT_EQ(metrics.scrape().find("worker=\"a\""), std::string::npos) << metrics.scrape();
  const Tally tally = audit.tally(kEngine);
  EXPECT_EQ(tally.equal + tally.under + tally.over + tally.unexplained, 0U);
}

}  // namespace
}  // namespace sightline::audit
