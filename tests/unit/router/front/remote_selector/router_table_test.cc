// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/remote_selector/router_table.h"

#include <map>

#include <gtest/gtest.h>

namespace sightline::remote_selector {
namespace {

std::vector<http::ServerAddress> addresses(int count) {
  std::vector<http::ServerAddress> all;
  for (int i = 0; i < count; ++i) all.push_back({"10.0.0." + std::to_string(i + 1), 8092});
  return all;
}

selection_json::WorkersReport told(const std::string& identity, std::uint32_t block_size = 16) {
  selection_json::WorkersReport told;
  told.identity = identity;
  told.served.block_size = block_size;
  return told;
}

TEST(RouterTable, SpreadsFrontendsAndMovesOnlyThoseOfRemovedRouter) {
  constexpr int kFrontends = 300;
  std::map<std::string, int> homes;
  int moved_in_vain = 0;
  for (int i = 0; i < kFrontends; ++i) {
    RouterTable table("frontend-" + std::to_string(i), "k");
    table.set(addresses(3));
    const std::string home = table.order().front().name;
    ++homes[home];
    table.set(addresses(2));
    if (home != "10.0.0.3:8092" && table.order().front().name != home) ++moved_in_vain;
  }
  EXPECT_EQ(homes.size(), 3U);
  for (const auto& [name, count] : homes) EXPECT_GT(count, kFrontends / 5) << name;
  EXPECT_EQ(moved_in_vain, 0);
}

TEST(RouterTable, HealthyRoutersComeFirstAndUnfitOnesNever) {
  RouterTable table("f", "k");
  table.set(addresses(3));
  const auto before = table.order();
  EXPECT_FALSE(table.check(RouterTable::Names::No).ok());
  EXPECT_TRUE(table.answered(before[2].id, told("k")));
  EXPECT_FALSE(table.answered(before[2].id, told("k"))) << "nothing new";
  EXPECT_TRUE(table.failed(before[0].id, "connection refused"));
  EXPECT_FALSE(table.failed(before[0].id, "connection refused"));
  EXPECT_TRUE(table.answered(before[1].id, told("other")));
  const auto order = table.order();
  ASSERT_EQ(order.size(), 2U);
  EXPECT_EQ(order[0].id, before[2].id);
  EXPECT_EQ(order[1].id, before[0].id);
  EXPECT_TRUE(table.check(RouterTable::Names::No).ok());
  EXPECT_EQ(table.counts(), (std::array<std::size_t, kRouterStates>{0, 1, 0, 0, 1, 1}));
}

TEST(RouterTable, RefusalNamesBothIdentities) {
  RouterTable table("f", "ours");
  table.set(addresses(1));
  table.answered(table.all()[0].id, told("theirs"));
  EXPECT_TRUE(table.order().empty());
  const auto checked = table.check(RouterTable::Names::Yes);
  ASSERT_FALSE(checked.ok());
  for (const char* part : {"10.0.0.1:8092", "ours", "theirs"}) {
    EXPECT_NE(checked.error().message.find(part), std::string::npos) << checked.error().message;
  }
  EXPECT_EQ(table.served(), nullptr);
}

TEST(RouterTable, UnreadyRouterComesLastAndItsModelsDoNotCount) {
  RouterTable table("f", "k");
  table.set(addresses(2));
  const auto order = table.order();
  auto word = told("k", 16);
  word.not_ready = "there is no worker list yet";
  table.answered(order[0].id, word);
  EXPECT_EQ(table.served(), nullptr);
  const auto checked = table.check(RouterTable::Names::Yes);
  ASSERT_FALSE(checked.ok());
  EXPECT_NE(checked.error().message.find("no worker list"), std::string::npos);
  table.answered(order[1].id, told("k", 32));
  EXPECT_EQ(table.order()[0].id, order[1].id);
  EXPECT_EQ(table.order()[1].id, order[0].id);
  EXPECT_TRUE(table.answers(order[0].id)) << "it is told of what it has booked";
  EXPECT_EQ(table.served()->block_size, 32U);
  table.answered(order[0].id, told("k", 16));
  EXPECT_EQ(table.order()[0].id, order[0].id);
}

TEST(RouterTable, RouterThatKnowsFewerWorkersComesLater) {
  RouterTable table("f", "k");
  table.set(addresses(3));
  const auto order = table.order();
  const auto tell = [&](std::size_t router, std::optional<std::uint32_t> known) {
    auto word = told("k", 16 + static_cast<std::uint32_t>(router));
    word.known = known;
    table.answered(order[router].id, word);
  };
  for (std::size_t router = 0; router < 3; ++router) tell(router, 8);
  EXPECT_TRUE(table.take_standings().empty());
  tell(0, 6);
  EXPECT_EQ(table.order()[0].id, order[0].id) << "what each sees some moments apart";
  tell(0, 5);
  EXPECT_EQ(table.order()[0].id, order[1].id);
  EXPECT_EQ(table.order()[2].id, order[0].id);
  EXPECT_TRUE(table.answers(order[0].id)) << "what it has booked stays there";
  EXPECT_TRUE(table.check(RouterTable::Names::No).ok());
  EXPECT_EQ(table.served()->block_size, 17U);
  EXPECT_EQ(table.counts(), (std::array<std::size_t, kRouterStates>{0, 2, 1, 0, 0, 0}));
  const auto standings = table.take_standings();
  ASSERT_EQ(standings.size(), 1U);
  EXPECT_TRUE(standings[0].is_behind);
  EXPECT_EQ(standings[0].router, order[0].name);
  EXPECT_EQ(standings[0].most, 8U);
  tell(1, 0);
  tell(2, 0);
  EXPECT_EQ(table.order()[0].id, order[0].id) << "nobody knows more";
  tell(0, 0);
  EXPECT_EQ(table.order()[0].id, order[0].id);
  EXPECT_EQ(table.order()[1].id, order[1].id);
  tell(2, 8);
  table.failed(order[2].id, "connection refused");
  EXPECT_EQ(table.order()[0].id, order[0].id) << "nobody that answers knows more";
}

TEST(RouterTable, RouterWithStaleNatsComesLater) {
  RouterTable table("f", "k");
  table.set(addresses(2));
  const auto order = table.order();
  auto word = told("k");
  table.answered(order[1].id, word);
  word.stale = "NATS cannot be reached";
  table.answered(order[0].id, word);
  EXPECT_EQ(table.order()[0].id, order[1].id);
  const auto standings = table.take_standings();
  ASSERT_EQ(standings.size(), 1U);
  EXPECT_EQ(standings[0].stale, "NATS cannot be reached");
  table.answered(order[1].id, word);
  EXPECT_EQ(table.order()[0].id, order[0].id) << "all are as old";
}

TEST(RouterTable, RouterWithoutWorkerCountIsNotBehind) {
  RouterTable table("f", "k");
  table.set(addresses(2));
  const auto order = table.order();
  auto word = told("k");
  table.answered(order[0].id, word);
  word.known = 8;
  table.answered(order[1].id, word);
  EXPECT_EQ(table.order()[0].id, order[0].id);
}

TEST(RouterTable, SilentRouterAnsweredUntilItsFirstTimeout) {
  RouterTable table("f", "k");
  table.set(addresses(1));
  const std::uint64_t id = table.order().front().id;
  const Instant begin{std::chrono::seconds(100)};
  const auto at = [begin](int seconds) { return begin + std::chrono::seconds(seconds); };
  table.failed(id, "no answer in time", at(0));
  EXPECT_FALSE(table.answered_until(id, at(1))) << "it has never answered";
  table.answered(id, told("k"));
  EXPECT_EQ(table.answered_until(id, at(1)), at(1));
  EXPECT_TRUE(table.failed(id, "no answer in time", at(2)));
  EXPECT_FALSE(table.failed(id, "no answer in time", at(3)));
  EXPECT_EQ(table.answered_until(id, at(4)), at(2));
  table.answered(id, told("k"));
  table.failed(id, "no answer in time", at(5));
  EXPECT_EQ(table.answered_until(id, at(6)), at(5));
  table.failed(id, "connection refused");
  EXPECT_FALSE(table.answered_until(id, at(6))) << "it is gone";
  table.failed(id, "no answer in time", at(7));
  EXPECT_FALSE(table.answered_until(id, at(8))) << "it is gone still";
  EXPECT_FALSE(table.answered_until(id + 1, at(8))) << "there is none";
}

TEST(RouterTable, ServedModelsAreThoseOfTheFirstHealthyRouter) {
  RouterTable table("f", "k");
  table.set(addresses(2));
  const auto order = table.order();
  table.answered(order[0].id, told("k", 16));
  table.answered(order[1].id, told("k", 32));
  EXPECT_EQ(table.served()->block_size, 16U);
  table.failed(order[0].id, "no answer in time");
  EXPECT_EQ(table.served()->block_size, 32U);
}

}  // namespace
}  // namespace sightline::remote_selector
