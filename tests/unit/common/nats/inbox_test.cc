// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/nats/inbox.h"

#include <gtest/gtest.h>

#include "common/runtime/worker_thread.h"

namespace sightline::nats {
namespace {

Message message(std::string payload) { return {"s", "", std::move(payload)}; }

// Events in short: the payload of a message, "+subject", "-reason", "lost N".
std::string shown(const Event& event) {
  if (const auto* got = std::get_if<Message>(&event)) return got->payload;
  if (const auto* connected = std::get_if<Connected>(&event)) return "+" + connected->subject;
  if (const auto* away = std::get_if<Disconnected>(&event)) return "-" + away->reason;
  return "lost " + std::to_string(std::get<Lost>(event).messages);
}

std::vector<std::string> drain(Inbox& inbox) {
  std::vector<std::string> events;
  while (const auto event = inbox.take_now()) events.push_back(shown(*event));
  return events;
}

using Texts = std::vector<std::string>;

TEST(Inbox, GivesEventsInTheOrderInWhichTheyWerePut) {
  Inbox inbox({});
  inbox.put(Connected{});
  inbox.put(message("a"));
  inbox.put(Disconnected{"gone"});
  inbox.put(message("b"));
  EXPECT_EQ(drain(inbox), (Texts{"+", "a", "-gone", "b"}));
}

TEST(Inbox, LossTakesThePlaceOfAMessageAboveTheLimit) {
  Inbox inbox({.messages_max = 2});
  EXPECT_TRUE(inbox.put(message("a")));
  EXPECT_TRUE(inbox.put(message("b")));
  EXPECT_FALSE(inbox.put(message("c")));
  EXPECT_FALSE(inbox.put(message("d")));
  EXPECT_EQ(shown(*inbox.take_now()), "a");
  EXPECT_TRUE(inbox.put(message("e")));
  EXPECT_FALSE(inbox.put(message("f")));
  EXPECT_EQ(drain(inbox), (Texts{"b", "lost 2", "e", "lost 1"}));
  EXPECT_EQ(inbox.lost_total(), 3u);
}

TEST(Inbox, AllTextOfAMessageCountsAgainstTheBytes) {
  const std::size_t small = 1 + 1 + 10 + Inbox::kMessageOverhead;
  Inbox inbox({.bytes_max = 2 * small});
  EXPECT_TRUE(inbox.put(Message{"s", "r", std::string(10, 'x')}));
  EXPECT_FALSE(inbox.put(Message{"s", "r", std::string(11, 'y')}));
  EXPECT_FALSE(inbox.put(Message{"ss", "r", std::string(10, 'y')}));
  EXPECT_FALSE(inbox.put(Message{"s", "rr", std::string(10, 'y')}));
  EXPECT_TRUE(inbox.put(Message{"s", "r", std::string(10, 'z')}));
  EXPECT_EQ(drain(inbox), (Texts{std::string(10, 'x'), "lost 3", std::string(10, 'z')}));
  EXPECT_TRUE(inbox.put(Message{"s", "r", std::string(10, 'x')})) << "taken ones count no more";
}

TEST(Inbox, EmptyInboxDropsAMessageLargerThanItsLimit) {
  Inbox inbox({.bytes_max = 1000});
  EXPECT_FALSE(inbox.put(message(std::string(1000, 'x'))));
  EXPECT_EQ(drain(inbox), Texts{"lost 1"});
}

TEST(Inbox, NoticesFindRoomWhereMessagesDoNot) {
  Inbox inbox({.messages_max = 1});
  inbox.put(message("a"));
  inbox.put(Disconnected{"gone"});
  inbox.put(Connected{});
  EXPECT_EQ(drain(inbox), (Texts{"a", "-gone", "+"}));
}

TEST(Inbox, LossesForOneReasonInOnePlaceAreOne) {
  Inbox inbox({});
  inbox.put(Lost{2, "slow"});
  inbox.put(Lost{3, "slow"});
  inbox.put(Lost{1, "refused"});
  inbox.put(Lost{0, "refused"});
  EXPECT_EQ(drain(inbox), (Texts{"lost 5", "lost 1", "lost 0"}));
}

TEST(Inbox, UnreadNoticesCollapseIntoOneLossAndTheState) {
  for (const bool is_connected : {false, true}) {
    Inbox inbox({});
    inbox.put(message("a"));
    for (std::size_t i = 0; i < Inbox::kNoticesMax; ++i) inbox.put(Connected{"one"});
    Event newest = Disconnected{"gone"};
    if (is_connected) newest = Connected{};
    inbox.put(newest);
    EXPECT_EQ(drain(inbox), (Texts{"lost 0", shown(newest)}));
    EXPECT_EQ(inbox.lost_total(), 1u);
  }
}

TEST(Inbox, CollapseRepeatsTheNewestState) {
  Inbox inbox({});
  inbox.put(Connected{});
  for (std::size_t i = 0; i < Inbox::kNoticesMax; ++i) inbox.put(Connected{"one"});
  EXPECT_EQ(drain(inbox), (Texts{"lost 0", "+", "+one"}));
}

TEST(Inbox, TakeWaitsOnlyUntilItsTime) {
  Inbox inbox({});
  const Instant until = system_clock().now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(inbox.take(until));
  EXPECT_GE(system_clock().now(), until);
  EXPECT_FALSE(inbox.take(until)) << "what is over is over";
  inbox.put(message("a"));
  EXPECT_EQ(shown(*inbox.take(until)), "a") << "what is there is given at any time";
}

TEST(Inbox, AnotherThreadsMessageEndsTheWait) {
  Inbox inbox({});
  const WorkerThread writer("writer",
                            [&inbox](const std::stop_token&) { inbox.put(message("a")); });
  const auto event = inbox.take(Instant::max());
  ASSERT_TRUE(event);
  EXPECT_EQ(shown(*event), "a");
}

TEST(Inbox, WakingEndsOneWaitAndTakesNoEvent) {
  Inbox inbox({});
  const WorkerThread waker("waker", [&inbox](const std::stop_token&) { inbox.wake(); });
  EXPECT_FALSE(inbox.take(Instant::max()));
  inbox.wake();
  inbox.put(message("a"));
  EXPECT_EQ(shown(*inbox.take(Instant::max())), "a");
  EXPECT_FALSE(inbox.take(Instant::max())) << "the wake is not forgotten over an event";
  EXPECT_FALSE(inbox.take(system_clock().now()));
}

TEST(Inbox, SeveralShareABudgetAndEachKeepsItsOwnLimit) {
  const std::size_t small = 1 + 10 + Inbox::kMessageOverhead;
  const auto budget = std::make_shared<ByteBudget>(3 * small);
  const std::string ten(10, 'x');
  Inbox a({.bytes_max = 2 * small}, {budget, nullptr});
  {
    Inbox b({}, {budget, nullptr});
    EXPECT_TRUE(a.put(message(ten)));
    EXPECT_TRUE(a.put(message(ten)));
    EXPECT_FALSE(a.put(message(ten))) << "its own limit";
    EXPECT_TRUE(b.put(message(ten)));
    EXPECT_FALSE(b.put(message(ten))) << "all together";
    EXPECT_EQ(budget->held(), 3 * small);
    EXPECT_EQ(drain(a), (Texts{ten, ten, "lost 1"}));
    EXPECT_TRUE(b.put(message(ten))) << "what was read makes room for others";
  }
  EXPECT_EQ(budget->held(), 0U) << "as does an inbox that ends";
}

TEST(Inbox, PutCallsItsReader) {
  int told = 0;
  Inbox inbox({.messages_max = 1}, {nullptr, [&told] { ++told; }});
  inbox.put(message("a"));
  EXPECT_EQ(told, 1);
  inbox.put(message("b"));
  EXPECT_EQ(told, 2) << "a Lost stands where it was dropped";
  inbox.put(Connected{});
  EXPECT_EQ(told, 3);
}

}  // namespace
}  // namespace sightline::nats
