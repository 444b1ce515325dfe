// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/retry/rules.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "router/front/retry/budget.h"

namespace sightline::retry {
namespace {

struct Case {
  AttemptOutcome ending;
  Past past;
  Repeatable repeatable;
  Next want;
};

TEST(RetryRules, GiveTheNextStepAfterAFailedAttempt) {
  using enum AttemptOutcome;
  using enum Repeatable;
  const Past first{.attempts = 1, .losses = 0};
  const Past after_a_loss{.attempts = 2, .losses = 1};
  const Past last{.attempts = kAttemptsMax, .losses = 0};
  const std::vector<Case> cases{
      // Nothing was sent. Another worker may take any request.
      {Unsent, first, Never, Next::AnotherWorker},
      {Unsent, first, WhenKept, Next::AnotherWorker},
      {Unsent, first, AnotherToo, Next::AnotherWorker},
      {Unsent, after_a_loss, AnotherToo, Next::AnotherWorker},
      {Unsent, last, AnotherToo, Next::GiveUp},
      // A kept connection closed. The same worker gets the request again, unless an engine was lost
      // before.
      {KeptClosed, first, Never, Next::GiveUp},
      {KeptClosed, first, WhenKept, Next::SameWorker},
      {KeptClosed, first, AnotherToo, Next::SameWorker},
      {KeptClosed, after_a_loss, AnotherToo, Next::GiveUp},
      // The request was sent on a fresh connection. One other engine may get it, and no third.
      {Lost, first, Never, Next::GiveUp},
      {Lost, first, WhenKept, Next::GiveUp},
      {Lost, first, AnotherToo, Next::AnotherWorker},
      {Lost, after_a_loss, AnotherToo, Next::GiveUp},
      // The engine answered that it cannot serve the request.
      {Declined, first, Never, Next::GiveUp},
      {Declined, first, WhenKept, Next::GiveUp},
      {Declined, first, AnotherToo, Next::AnotherWorker},
      {Declined, after_a_loss, AnotherToo, Next::AnotherWorker},
      {Declined, last, AnotherToo, Next::GiveUp},
      // The engine may still be at work, the cause is ours, or the answer is final.
      {Silent, first, AnotherToo, Next::GiveUp},
      {Local, first, AnotherToo, Next::GiveUp},
      {Final, first, AnotherToo, Next::GiveUp},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(next_after(c.ending, c.past, c.repeatable), c.want)
        << "ending " << int(c.ending) << " attempts " << c.past.attempts << " losses "
        << c.past.losses << " repeatable " << int(c.repeatable);
  }
}

// Follows every way through the rules, with the worst engine at each step.
TEST(RetryRules, LoseNoRequestMoreThanTwice) {
  const std::vector<AttemptOutcome> endings{AttemptOutcome::Unsent, AttemptOutcome::KeptClosed,
                                            AttemptOutcome::Lost, AttemptOutcome::Declined};
  std::vector<std::vector<AttemptOutcome>> open{{}};
  std::size_t ways = 0;
  while (!open.empty()) {
    const std::vector<AttemptOutcome> way = open.back();
    open.pop_back();
    for (const AttemptOutcome ending : endings) {
      Past past;
      for (const AttemptOutcome before : way) past.losses += is_loss(before) ? 1 : 0;
      past.attempts = static_cast<std::uint32_t>(way.size()) + 1;
      ASSERT_LE(past.losses + (is_loss(ending) ? 1 : 0), kLossesMax);
      ASSERT_LE(past.attempts, kAttemptsMax);
      ++ways;
      if (next_after(ending, past, Repeatable::AnotherToo) == Next::GiveUp) continue;
      open.push_back(way);
      open.back().push_back(ending);
    }
  }
  EXPECT_GT(ways, 50U);
}

TEST(RetryRules, BlameNoWorkerForIdleCloseOrLocalFailure) {
  EXPECT_FALSE(is_failure(AttemptOutcome::KeptClosed));
  EXPECT_FALSE(is_failure(AttemptOutcome::Local));
  for (const AttemptOutcome ending : {AttemptOutcome::Unsent, AttemptOutcome::Lost,
                                      AttemptOutcome::Declined, AttemptOutcome::Silent}) {
    EXPECT_TRUE(is_failure(ending));
  }
}

TEST(RetryRules, AllowRetriesForAFifthOfLiveRequests) {
  EXPECT_TRUE(may_retry_beside(2, 3));
  EXPECT_FALSE(may_retry_beside(3, 3));
  EXPECT_FALSE(may_retry_beside(3, 19));
  EXPECT_TRUE(may_retry_beside(3, 20));
  EXPECT_TRUE(may_retry_beside(19, 100));
  EXPECT_FALSE(may_retry_beside(20, 100));
}

TEST(RetryBudget, GivesEachRequestOnePlaceUntilItEnds) {
  RetryBudget budget;
  std::vector<std::unique_ptr<RetryBudget::Live>> live;
  for (int i = 0; i < 4; ++i) live.push_back(std::make_unique<RetryBudget::Live>(budget));
  EXPECT_EQ(live.back()->number(), 4U);
  RetryBudget::BudgetSlot first(budget);
  EXPECT_TRUE(first.take());
  EXPECT_TRUE(first.take());
  RetryBudget::BudgetSlot second(budget);
  EXPECT_TRUE(second.take());
  std::optional<RetryBudget::BudgetSlot> third(std::in_place, budget);
  EXPECT_TRUE(third->take());
  RetryBudget::BudgetSlot fourth(budget);
  EXPECT_FALSE(fourth.take());
  third.reset();
  EXPECT_TRUE(fourth.take());
  live.clear();
  EXPECT_EQ(budget.live(), 0U);
}

}  // namespace
}  // namespace sightline::retry
