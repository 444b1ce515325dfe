// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/lists_exchange/list_exchange.h"

#include <map>

#include <gtest/gtest.h>

namespace sightline::lists_exchange {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Own own(std::uint64_t generation, const std::string& body, std::uint64_t digest = 0) {
  return {generation, digest != 0 ? digest : generation * 31,
          std::make_shared<const std::string>(body)};
}

// Routers that receive each other's messages immediately, and a record of all messages.
class ListsAmongRouters : public testing::Test {
 protected:
  struct Router {
    explicit Router(std::uint64_t instance, Instant now, ListExchangeOptions options = {})
        : exchange(instance, instance * 977, now, options) {}
    ListExchange exchange;
    Own held;
    std::vector<std::string> lists;
    bool does_without = false;
    bool hears = true;
    std::uint64_t forked = 0;
    std::uint64_t unanswered = 0;
  };

  Router& add(std::uint64_t instance, const Own& held = {}, bool is_connected = true) {
    Router& router = routers.try_emplace(instance, instance, now).first->second;
    router.held = held;
    router.exchange.set_own(held);
    if (is_connected) router.exchange.connected(now);
    return router;
  }

  // Delivers all messages until there are no more.
  void settle() {
    for (bool is_quiet = false; !is_quiet;) {
      is_quiet = true;
      for (auto& [instance, router] : routers) is_quiet = take_turn(instance, router) && is_quiet;
    }
  }

  bool take_turn(std::uint64_t instance, Router& router) {
    ListExchange::Actions turn = router.exchange.turn(now);
    for (const ListAsk& ask : turn.asks) {
      asks.push_back(ask);
      for (auto& [other, peer] : routers) {
        if (other != instance && peer.hears && router.hears) peer.exchange.hear(ask, now);
      }
    }
    for (auto& [asker, answer] : turn.answers) {
      answers.emplace_back(asker, answer);
      const auto peer = routers.find(asker);
      if (peer != routers.end() && peer->second.hears) peer->second.exchange.hear(answer, now);
    }
    if (turn.list) {
      router.lists.push_back(*turn.list);
      router.held = own(std::stoull(*turn.list), *turn.list);
      router.exchange.set_own(router.held);
    }
    router.does_without = router.does_without || turn.does_without;
    if (turn.forked) router.forked = *turn.forked;
    router.unanswered += turn.unanswered;
    return turn.asks.empty() && turn.answers.empty() && !turn.list;
  }

  void pass(Duration time) {
    const Instant end = now + time;
    for (; now < end; now += milliseconds(50)) settle();
  }

  Instant now = Instant{} + seconds(100);
  std::map<std::uint64_t, Router> routers;
  std::vector<ListAsk> asks;
  std::vector<std::pair<std::uint64_t, Message>> answers;
};

TEST_F(ListsAmongRouters, RestartedRouterGetsTheNewestListInTime) {
  add(1, own(4, "4"));
  add(2, own(5, "5"));
  Router& fresh = add(3);
  settle();
  EXPECT_EQ(fresh.lists.back(), "5");
  pass(seconds(5));
  EXPECT_FALSE(fresh.does_without);
  EXPECT_EQ(routers.at(1).lists, std::vector<std::string>{"5"});
}

TEST_F(ListsAmongRouters, WhoFindsNoListDoesWithoutASecondAfterItsConnection) {
  add(1);
  pass(milliseconds(900));
  EXPECT_FALSE(routers.at(1).does_without);
  pass(milliseconds(300));
  EXPECT_TRUE(routers.at(1).does_without);
}

TEST_F(ListsAmongRouters, WithoutAConnectionItDoesWithoutAfterThree) {
  Router& alone = add(1, {}, false);
  pass(milliseconds(2900));
  EXPECT_FALSE(alone.does_without);
  pass(milliseconds(200));
  EXPECT_TRUE(alone.does_without);
  EXPECT_TRUE(asks.empty());
  EXPECT_EQ(alone.exchange.due(), Instant::max());
}

TEST_F(ListsAmongRouters, AnAnnouncedNewerGenerationIsFetchedWithinASecond) {
  Router& late = add(1, own(4, "4"));
  Router& early = add(2, own(4, "4"));
  pass(seconds(2));
  early.held = own(6, "6");
  early.exchange.set_own(early.held);
  late.exchange.announced({6}, now);
  pass(milliseconds(1100));
  EXPECT_EQ(late.lists, std::vector<std::string>{"6"});
}

TEST_F(ListsAmongRouters, WithoutAnAnnouncementTheyConvergeWithinTenSeconds) {
  Router& late = add(1, own(4, "4"));
  Router& early = add(2, own(4, "4"));
  pass(seconds(2));
  early.held = own(6, "6");
  early.exchange.set_own(early.held);
  pass(milliseconds(10'100));
  EXPECT_EQ(late.lists, std::vector<std::string>{"6"});
}

TEST_F(ListsAmongRouters, MadeUpAnnouncementsBringFewQuestions) {
  Router& router = add(1, own(4, "4"));
  pass(seconds(2));
  const std::size_t before = asks.size();
  for (std::uint64_t lie = 5; lie < 1000; ++lie) {
    router.exchange.announced({lie}, now);
    settle();
    now += milliseconds(10);
  }
  EXPECT_LE(asks.size() - before, 11U);
}

TEST_F(ListsAmongRouters, LongListComesInPartsAndLostOnesAgain) {
  std::string body = "7";
  while (body.size() < 3 * kPartBytesMax + 5) body += " ";
  add(1, own(7, body));
  Router& fresh = add(2);
  settle();
  ASSERT_EQ(fresh.lists.size(), 1U);
  EXPECT_EQ(fresh.lists[0], body);
  // Half of its incoming messages are lost.
  Router& deaf = add(3);
  for (int i = 0; i < 200 && deaf.lists.empty(); ++i) {
    deaf.hears = i % 2 == 0;
    pass(milliseconds(50));
    deaf.hears = i % 4 < 2;
    pass(milliseconds(250));
  }
  ASSERT_FALSE(deaf.lists.empty());
  EXPECT_EQ(deaf.lists[0], body);
}

TEST_F(ListsAmongRouters, WhatWasRecordedIsAnswerToNothing) {
  add(1, own(5, "5"));
  add(2);
  settle();
  const auto tape = answers;
  ASSERT_GE(tape.size(), 2U);
  // The same router starts again without peers, and gets the list that its predecessor got.
  routers.clear();
  Router& again = routers.try_emplace(2, 2, now).first->second;
  ListExchange other_draw(2, 12345, now);
  other_draw.connected(now);
  static_cast<void>(other_draw.turn(now));
  for (const auto& [asker, answer] : tape) other_draw.hear(answer, now);
  const auto turn = other_draw.turn(now);
  EXPECT_FALSE(turn.list);
  EXPECT_TRUE(turn.asks.empty()) << "nothing is fetched by a recorded answer";
  EXPECT_TRUE(again.lists.empty());
}

TEST_F(ListsAmongRouters, AnAnswerThatComesTooLateDoesNotCount) {
  Router& router = add(1);
  const auto turn = router.exchange.turn(now);
  ASSERT_EQ(turn.asks.size(), 1U);
  router.exchange.hear(ListReply{9, turn.asks[0].nonce, 5, 1, 10}, now + seconds(2));
  EXPECT_TRUE(router.exchange.turn(now).asks.empty());
}

TEST_F(ListsAmongRouters, ALowerOrEqualGenerationIsNotFetched) {
  add(1, own(5, "5"));
  Router& same = add(2, own(5, "5"));
  Router& newer = add(3, own(6, "6"));
  settle();
  EXPECT_EQ(same.lists, std::vector<std::string>{"6"});
  EXPECT_TRUE(newer.lists.empty());
}

TEST_F(ListsAmongRouters, ReportsAForkOfLists) {
  Router& one = add(1, own(5, "5", 111));
  add(2, own(5, "5", 222));
  settle();
  EXPECT_EQ(one.forked, 2U);
  EXPECT_TRUE(one.lists.empty());
}

TEST_F(ListsAmongRouters, MissingGenerationDoesNotHideAnAvailableOne) {
  constexpr std::uint64_t kLie = ~0ULL;
  Router& late = add(1, own(4, "4"));
  Router& early = add(2, own(4, "4"));
  pass(seconds(2));
  late.exchange.announced({4, kLie}, now);
  pass(seconds(60));
  early.held = own(6, "6");
  early.exchange.set_own(early.held);
  late.exchange.announced({6, kLie}, now);
  pass(milliseconds(1'100));
  EXPECT_EQ(late.lists, std::vector<std::string>{"6"});
}

TEST_F(ListsAmongRouters, LostQuestionRepeatsSoonForAnAnnouncedList) {
  Router& late = add(1, own(4, "4"));
  Router& early = add(2, own(4, "4"));
  pass(seconds(2));
  early.held = own(6, "6");
  early.exchange.set_own(early.held);
  late.exchange.announced({6}, now);
  late.hears = false;
  pass(milliseconds(500));
  late.hears = true;
  pass(milliseconds(2'500));
  EXPECT_EQ(late.lists, std::vector<std::string>{"6"});
}

TEST_F(ListsAmongRouters, RepeatedQuestionTakesNoShareOfOthers) {
  Router& router = add(1, own(5, "5"));
  settle();
  const ListAsk recorded{.asker = 9, .nonce = 1, .of = 1, .generation = 5, .number = 7};
  answers.clear();
  for (int i = 0; i < 5'000; ++i) router.exchange.hear(recorded, now);
  settle();
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(router.unanswered, 0U);
  Router& fresh = add(2);
  settle();
  EXPECT_EQ(fresh.lists, std::vector<std::string>{"5"});
}

TEST_F(ListsAmongRouters, AskersAreRememberedWithinALimit) {
  Router& router = add(1, own(5, "5"));
  settle();
  for (std::uint64_t asker = 10; asker < 20'000; ++asker) {
    router.exchange.hear(ListAsk{.asker = asker, .nonce = 1, .number = 1}, now);
    settle();
    now += milliseconds(1);
  }
  answers.clear();
  router.exchange.hear(ListAsk{.asker = 19'999, .nonce = 1, .number = 1}, now);
  settle();
  EXPECT_TRUE(answers.empty()) << "the newest is remembered";
}

TEST_F(ListsAmongRouters, QuestionsAreAnsweredUpToALimit) {
  Router& router = add(1, own(5, "5"));
  settle();
  answers.clear();
  std::uint64_t number = 0;
  for (int i = 0; i < 5000; ++i) {
    router.exchange.hear(ListAsk{.asker = 9, .nonce = 1, .number = ++number}, now);
  }
  for (int i = 0; i < 500; ++i) {
    router.exchange.hear(
        ListAsk{.asker = 9, .nonce = 1, .of = 1, .generation = 5, .number = ++number}, now);
  }
  settle();
  EXPECT_LE(answers.size(), 2128U);
  EXPECT_GE(router.unanswered, 3300U);
}

TEST_F(ListsAmongRouters, DoesNotFetchAListAboveThePushLimit) {
  Router& router = add(1);
  const auto turn = router.exchange.turn(now);
  ASSERT_EQ(turn.asks.size(), 1U);
  router.exchange.hear(ListReply{9, turn.asks[0].nonce, 5, 1, (4U << 20U) + 1}, now);
  router.exchange.hear(ListReply{9, turn.asks[0].nonce, 5, 1, 0}, now);
  EXPECT_TRUE(router.exchange.turn(now).asks.empty());
}

TEST_F(ListsAmongRouters, PartsFitTheLimitOfTheNatsServer) {
  const std::string body = "7 " + std::string(998, 'x');
  add(1, own(7, body)).exchange.set_part_bytes_max(100);
  add(2);
  settle();
  EXPECT_EQ(routers.at(2).lists, std::vector<std::string>{body});
  std::size_t parts = 0;
  for (const auto& [asker, answer] : answers) {
    if (const auto* part = std::get_if<ListChunk>(&answer)) {
      ++parts;
      EXPECT_EQ(part->bytes.size(), 100U);
    }
  }
  EXPECT_EQ(parts, 10U);
}

TEST_F(ListsAmongRouters, APartThatDoesNotFitEndsTheFetching) {
  Router& router = add(1);
  auto turn = router.exchange.turn(now);
  router.exchange.hear(ListReply{9, turn.asks[0].nonce, 5, 1, 10}, now);
  turn = router.exchange.turn(now);
  ASSERT_EQ(turn.asks.size(), 1U);
  const ListAsk ask = turn.asks[0];
  EXPECT_EQ(ask.of, 9U);
  router.exchange.hear(ListChunk{9, ask.nonce, 5, 0, std::string(11, 'x')}, now);
  turn = router.exchange.turn(now);
  EXPECT_FALSE(turn.list);
  router.exchange.hear(ListChunk{9, ask.nonce, 5, 0, std::string(10, 'x')}, now);
  EXPECT_FALSE(router.exchange.turn(now).list);
}

}  // namespace
}  // namespace sightline::lists_exchange
