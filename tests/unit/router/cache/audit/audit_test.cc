// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/audit/audit.h"

#include <atomic>
#include <mutex>
#include <optional>
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

operations::CacheFacts verified(std::optional<Instant> caught_up = {}) {
  operations::CacheFacts facts;
  facts.health = operations::FeedHealth::Verified;
  facts.missing.forgotten = false;
  facts.caught_up = caught_up;
  return facts;
}

// An index that claims 101 blocks of every cache.
class Claimed : public index::IndexStatistics {
 public:
  std::atomic<std::uint64_t> refused_blocks = 0;

  [[nodiscard]] std::uint64_t blocks(CacheId) const override { return 101; }
  [[nodiscard]] std::uint64_t blocks_total() const override { return 101; }
  [[nodiscard]] operations::CacheDigest digest(CacheId) const override { return {}; }
  [[nodiscard]] std::uint64_t refused_total() const override { return refused_blocks; }
  [[nodiscard]] std::uint64_t refused(CacheId) const override { return refused_blocks; }
  [[nodiscard]] index::CacheLimits limits(CacheId) const override { return {}; }
  [[nodiscard]] bool has_room() const override { return true; }
  [[nodiscard]] std::vector<BlockKey> held(CacheId, index::Tier) const override { return {}; }
};

class AuditTest : public testing::Test {
 protected:
  AuditTest() { audit.follow(kEngine); }

  Answered answered(std::uint64_t predicted, std::optional<std::uint64_t> actual) const {
    return {.request_id = "r",
            .worker = "a",
            .cache = kEngine,
            .predicted = predicted,
            .actual = actual,
            .blocks = kBlocks,
            .removals = journal.position(),
            .decided = system_clock().now()};
  }
  [[nodiscard]] double tokens(const std::string& series) const {
    const std::string text = metrics.scrape();
    const auto at = text.find("\nsightline_" + series);
    return at == std::string::npos ? -1 : std::stod(text.substr(text.find("} ", at) + 2));
  }
  // Waits until the exposition has this line.
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

  // By default all events are applied at every moment.
  [[nodiscard]] std::optional<operations::CacheFacts> facts() const {
    const std::lock_guard lock(mutex);
    if (caught_up_always && told) told->caught_up = system_clock().now();
    return told;
  }
  void tell(std::optional<operations::CacheFacts> now) {
    const std::lock_guard lock(mutex);
    caught_up_always = false;
    told = now;
  }
  // The two wrong claims after which the audit makes the router learn an engine again.
  void go_wrong_twice() {
    for (int i = 0; i < 2; ++i) audit.compare(answered(32, 0));
  }

  index::RemovalJournal journal;
  runtime::Metrics metrics;
  mutable std::mutex mutex;  // guards the next five
  mutable std::optional<operations::CacheFacts> told = verified();
  bool caught_up_always = true;
  int looks = 0;
  std::vector<CacheRoom> rooms;
  int room_looks = 0;
  Claimed index;
  BoundedQueue<Relearn> relearns{8};
  Audit audit{{.announcement_delay = std::chrono::milliseconds(20),
               .look_again_after = std::chrono::milliseconds(5),
               .judged_within = std::chrono::milliseconds(200),
               .overfull_interval = std::chrono::milliseconds(5),
               .claims = {.bytes_max = 1U << 20U, .per_engine_max = 4}},
              {.journal = journal,
               .index = index,
               .facts = [this](CacheId) { return facts(); },
               .look =
                   [this](CacheId) {
                     const std::lock_guard lock(mutex);
                     ++looks;
                   },
               .rooms =
                   [this] {
                     const std::lock_guard lock(mutex);
                     ++room_looks;
                     return rooms;
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

TEST_F(AuditTest, TwoUnexplainedClaimsInARowRelearnTheEngine) {
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

TEST_F(AuditTest, AnswerToAnotherPromptKeepsTheStrikes) {
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
  operations::CacheFacts lacking = verified();
  lacking.missing.unknown_content = true;
  tell(lacking);
  audit.compare(answered(0, 16));
  EXPECT_TRUE(shows(miss("under", "unknown_content", 1)));
  lacking.missing.forgotten = true;
  tell(lacking);
  audit.compare(answered(0, 16));
  EXPECT_TRUE(shows(miss("under", "forgotten", 1)));
  lacking.missing.no_room = true;
  tell(lacking);
  audit.compare(answered(0, 16));
  EXPECT_TRUE(shows(miss("under", "index_full", 1)));
  tell(std::nullopt);
  audit.compare(answered(0, 16));
  EXPECT_TRUE(shows(miss("under", "forgotten", 2)));
  tell(verified());
  index.refused_blocks = 1;
  audit.compare(answered(0, 16));
  EXPECT_TRUE(shows(miss("under", "index_full", 2)));
  EXPECT_EQ(audit.tally(kEngine).under, 7U);
}

TEST_F(AuditTest, EngineWithoutCountsIsVisiblyNotJudged) {
  for (int i = 0; i < 3; ++i) audit.compare(answered(32, std::nullopt));
  EXPECT_TRUE(shows("sightline_predictions_total{worker=\"a\",result=\"untold\"} 3"));
  EXPECT_EQ(audit.tally(kEngine).untold, 3U);
  EXPECT_EQ(audit.tally(kEngine).over, 0U);
}

TEST_F(AuditTest, MissingCountMeansZeroForEnginesThatOmitZero) {
  Answered silent = answered(32, std::nullopt);
  silent.leaves_zero_out = true;
  audit.compare(silent);  // it may not report counts at all
  EXPECT_EQ(audit.tally(kEngine).untold, 1U);
  audit.compare(answered(32, 32));
  audit.compare(silent);
  audit.compare(silent);
  EXPECT_EQ(relearns.pop(), Relearn::FromReplay);
  EXPECT_EQ(audit.tally(kEngine).over, 2U);
  EXPECT_EQ(audit.tally(kEngine).untold, 1U);
}

TEST_F(AuditTest, MissingCountIsNotZeroForOtherEngines) {
  audit.compare(answered(32, 32));
  audit.compare(answered(32, std::nullopt));
  audit.compare(answered(32, std::nullopt));
  EXPECT_EQ(audit.tally(kEngine).untold, 2U);
  EXPECT_EQ(audit.tally(kEngine).over, 0U);
}

TEST_F(AuditTest, EngineThatReusesAllButOneBlockRelearnsOnce) {
  for (int i = 0; i < 6; ++i) {
    audit.compare(answered(32, 16));
    // One after the other: a choice from before the engine was learned again does not count.
    EXPECT_TRUE(test::eventually([&] {
      const Tally tally = audit.tally(kEngine);
      return tally.unexplained + tally.not_reused == static_cast<std::uint64_t>(i + 1);
    }));
  }
  EXPECT_TRUE(shows(miss("over", "not_reused", 3)));
  EXPECT_EQ(audit.tally(kEngine).relearned, 1U);
  EXPECT_EQ(audit.tally(kEngine).not_reused, 3U);
}

TEST_F(AuditTest, NoStrikeBeforeAllAnnouncedEventsAreApplied) {
  const Instant early = system_clock().now();
  tell(verified(early));
  go_wrong_twice();
  EXPECT_TRUE(test::eventually([&] {
    const std::lock_guard lock(mutex);
    return looks >= 3;
  }));
  EXPECT_EQ(audit.tally(kEngine).unexplained, 0U);
  // The removals were announced, but not read.
  journal.removed(kEngine, kBlocks);
  tell(verified(system_clock().now()));
  EXPECT_TRUE(shows(miss("over", "removed", 2)));
  EXPECT_EQ(audit.tally(kEngine).unexplained, 0U);
}

TEST_F(AuditTest, ClaimsOfAnEngineThatStaysBehindAreNotJudged) {
  tell(verified());
  go_wrong_twice();
  EXPECT_TRUE(shows(miss("over", "not_judged", 2)));
  const Tally tally = audit.tally(kEngine);
  EXPECT_EQ(tally.not_judged, 2U);
  EXPECT_EQ(tally.unexplained + tally.relearned, 0U);
}

TEST_F(AuditTest, EngineWithoutEventsIsNotJudged) {
  for (const auto& state :
       {std::optional<operations::CacheFacts>{}, std::optional(operations::CacheFacts{})}) {
    tell(state);
    const std::uint64_t before = audit.tally(kEngine).not_judged;
    go_wrong_twice();
    EXPECT_TRUE(test::eventually([&] { return audit.tally(kEngine).not_judged == before + 2; }));
  }
  EXPECT_EQ(audit.tally(kEngine).unexplained, 0U);
}

TEST_F(AuditTest, AnEngineThatIsBehindKeepsNoOtherWaiting) {
  tell(verified());
  audit.compare(answered(32, 0));
  Answered other = answered(32, 0);
  other.worker = "b";
  other.cache = CacheId{5};
  audit.follow(other.cache);
  EXPECT_TRUE(test::eventually([&] {
    const std::lock_guard lock(mutex);
    return looks >= 1;
  }));
  tell(verified(system_clock().now() + std::chrono::hours(1)));
  audit.compare(other);
  EXPECT_TRUE(shows("misses_total{worker=\"b\",result=\"over\",cause=\"unexplained\"} 1"));
}

TEST_F(AuditTest, UpperBoundClaimIsNoStrike) {
  auto facts = verified(system_clock().now() + std::chrono::hours(1));
  facts.upper_bound = true;
  tell(facts);
  for (int i = 0; i < 20; ++i) audit.compare(answered(32, 0));
  EXPECT_TRUE(shows(miss("over", "upper_bound", 20)));
  const Tally tally = audit.tally(kEngine);
  EXPECT_EQ(tally.upper_bound, 20U);
  EXPECT_EQ(tally.unexplained + tally.relearned, 0U);
}

TEST_F(AuditTest, OneEnginesClaimsTakeNoMoreRoomThanTheirs) {
  tell(verified());
  for (int i = 0; i < 10; ++i) audit.compare(answered(32, 0));
  EXPECT_EQ(audit.tally(kEngine).not_judged, 6U) << "four wait";
}

TEST_F(AuditTest, ClaimsBeyondTheMemoryForThemAreNotJudged) {
  tell(verified());
  const std::vector<BlockKey> blocks(100'000, BlockKey{1});  // 800 kB of 1 MiB
  Answered large = answered(1'600'000, 0);
  large.blocks = blocks;
  audit.compare(large);
  audit.compare(large);
  EXPECT_EQ(audit.tally(kEngine).not_judged, 1U);
}

TEST_F(AuditTest, ClaimsAboveTheCapacityRelearnTheEngine) {
  {
    const std::lock_guard lock(mutex);
    rooms = {{kEngine, "a", 100}};
  }
  EXPECT_EQ(relearns.pop(), Relearn::FromReplay);
  EXPECT_TRUE(shows("sightline_overfull_total{worker=\"a\"} 1"));
  EXPECT_TRUE(shows("sightline_relearns_total{worker=\"a\"} 1"));
  const Tally tally = audit.tally(kEngine);
  EXPECT_EQ(tally.overfull, 1U);
  EXPECT_EQ(tally.relearned_because, "overfull");
  {
    const std::lock_guard lock(mutex);
    rooms.clear();
  }
  go_wrong_twice();
  EXPECT_TRUE(shows(miss("over", "unexplained", 2)));
  EXPECT_TRUE(shows("sightline_relearns_postponed_total{worker=\"a\"} 1"));
  EXPECT_EQ(audit.tally(kEngine).relearned, 1U);
}

TEST_F(AuditTest, FullEngineStaysTrusted) {
  int before = 0;
  {
    const std::lock_guard lock(mutex);
    rooms = {{kEngine, "a", 101}};
    before = room_looks;
  }
  EXPECT_TRUE(test::eventually([&] {
    const std::lock_guard lock(mutex);
    return room_looks > before + 4;
  }));
  EXPECT_EQ(audit.tally(kEngine).overfull, 0U);
}

TEST_F(AuditTest, ClaimsAboveTheCapacityCountOnlyForCompleteExactFeeds) {
  auto bound = verified();
  bound.upper_bound = true;
  auto lost = verified();
  lost.health = operations::FeedHealth::Disconnected;
  for (const auto& state :
       {std::optional<operations::CacheFacts>{}, std::optional(bound), std::optional(lost)}) {
    tell(state);
    int before = 0;
    {
      const std::lock_guard lock(mutex);
      rooms = {{kEngine, "a", 100}};
      before = room_looks;
    }
    EXPECT_TRUE(test::eventually([&] {
      const std::lock_guard lock(mutex);
      return room_looks > before + 4;
    }));
  }
  EXPECT_EQ(audit.tally(kEngine).overfull, 0U);
}

TEST_F(AuditTest, AnEngineThatLeftIsForgotten) {
  audit.compare(answered(32, 32));
  audit.forget(kEngine);
  EXPECT_EQ(audit.tally(kEngine).equal, 0U);
}

TEST_F(AuditTest, CountsTokensOfJudgedAnswersOnly) {
  Answered one = answered(32, 16);
  one.prompt_tokens = 100;
  one.best = 48;
  one.predicted_image = 20;
  audit.compare(one);
  one.actual = 32;
  audit.compare(one);
  one.actual.reset();
  audit.compare(one);
  EXPECT_EQ(tokens("judged_prompt_tokens_total{worker=\"a\"}"), 200);
  EXPECT_EQ(tokens("best_tokens_total{worker=\"a\"}"), 96);
  EXPECT_EQ(tokens("predicted_tokens_total{worker=\"a\",content=\"text\"}"), 24);
  EXPECT_EQ(tokens("predicted_tokens_total{worker=\"a\",content=\"image\"}"), 40);
  EXPECT_EQ(tokens("reused_tokens_total{worker=\"a\"}"), 48);
}

TEST_F(AuditTest, AnswersAfterAnEngineLeftLeaveNoState) {
  audit.compare(answered(32, 0));
  audit.forget(kEngine);
  metrics.remove_worker("a");
  for (const std::uint64_t actual : {32, 48, 0}) audit.compare(answered(32, actual));
  // Judged in their order: once this one is, the first one is.
  Answered other = answered(32, 0);
  other.worker = "b";
  other.cache = CacheId{5};
  audit.follow(other.cache);
  audit.compare(other);
  EXPECT_TRUE(shows("misses_total{worker=\"b\",result=\"over\",cause=\"unexplained\"} 1"));
  EXPECT_EQ(metrics.scrape().find("worker=\"a\""), std::string::npos) << metrics.scrape();
  const Tally tally = audit.tally(kEngine);
  EXPECT_EQ(tally.equal + tally.under + tally.over + tally.unexplained, 0U);
}

}  // namespace
}  // namespace sightline::audit
