// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/byte_budget.h"

#include <barrier>
#include <thread>

#include <gtest/gtest.h>

namespace sightline {
namespace {

TEST(ByteBudget, ASharesGrowthIsRefusedAboveTheMaximumAndGivesTheShareUp) {
  ByteBudget budget(10);
  std::size_t first = 0;
  std::size_t second = 0;
  EXPECT_TRUE(budget.grow(first, 4));
  EXPECT_TRUE(budget.grow(second, 6));
  EXPECT_EQ(budget.held(), 10U);
  EXPECT_TRUE(budget.grow(first, 4)) << "it does not grow";
  EXPECT_FALSE(budget.grow(first, 5));
  EXPECT_EQ(first, 0U);
  EXPECT_EQ(budget.held(), 6U);
  EXPECT_TRUE(budget.grow(second, 10));
  budget.release(second);
  EXPECT_EQ(second, 0U);
  EXPECT_EQ(budget.held(), 0U);
}

TEST(ByteBudget, OfTwoThatGrowAtTheSameTimeIntoRoomForOneExactlyOneFails) {
  constexpr int kRounds = 10'000;
  ByteBudget budget(10);
  std::barrier both(2);
  bool succeeded[2] = {};
  int wrong = 0;
  const auto grow = [&](int self) {
    for (int round = 0; round < kRounds; ++round) {
      std::size_t share = 0;
      const bool began = budget.grow(share, 4);
      both.arrive_and_wait();
      succeeded[self] = began && budget.grow(share, 8);
      both.arrive_and_wait();
      if (self == 0 && succeeded[0] == succeeded[1]) ++wrong;
      both.arrive_and_wait();
      budget.release(share);
      both.arrive_and_wait();
    }
  };
  std::thread other(grow, 1);
  grow(0);
  other.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(budget.held(), 0U);
}

}  // namespace
}  // namespace sightline
