// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/byte_budget.h"

#include <barrier>
#include <thread>

#include <gtest/gtest.h>

namespace sightline {
namespace {

TEST(ByteBudget, GrowthAboveTheMaximumFailsAndReleasesTheShare) {
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

TEST(ByteBudget, OneOfTwoConcurrentGrowthsFailsWithRoomForOne) {
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

TEST(ByteBudget, WhatAChildHoldsItsParentHoldsToo) {
  ByteBudget whole(10);
  ByteBudget one(8, {.parent = &whole});
  ByteBudget other(8, {.parent = &whole});
  std::size_t share = 0;
  EXPECT_TRUE(one.add(share, 6));
  EXPECT_EQ(whole.held(), 6U);
  EXPECT_EQ(other.room(), 4U);
  std::size_t second = 0;
  EXPECT_FALSE(other.add(second, 5));
  EXPECT_EQ(other.held(), 0U);
  EXPECT_EQ(other.refused(), 0U) << "it had room itself";
  EXPECT_EQ(whole.refused(), 1U);
  EXPECT_TRUE(other.add(second, 4));
  EXPECT_FALSE(other.grow(second, 5));
  EXPECT_EQ(second, 0U);
  EXPECT_EQ(other.held(), 0U);
  EXPECT_EQ(whole.held(), 6U);
  one.release(share);
  EXPECT_EQ(whole.held(), 0U);
}

TEST(ByteBudget, OnlySmallClaimsTakeWhatIsKeptForThem) {
  ByteBudget budget(10, {.kept_for_small_bytes = 4});
  std::size_t large = 0;
  std::size_t small = 0;
  EXPECT_FALSE(budget.add(large, 7));
  EXPECT_TRUE(budget.add(large, 6));
  EXPECT_FALSE(budget.add(large, 1));
  EXPECT_TRUE(budget.add(small, 4, Claim::Small));
  EXPECT_FALSE(budget.add(small, 1, Claim::Small));
}

TEST(ByteBudget, WhatIsInMemoryAlreadyIsChargedAboveTheMaximum) {
  ByteBudget budget(10);
  std::size_t share = 0;
  budget.charge(share, 12);
  EXPECT_EQ(budget.room(), 0U);
  std::size_t other = 0;
  EXPECT_FALSE(budget.add(other, 1));
  budget.remove(share, 3);
  EXPECT_TRUE(budget.add(other, 1));
}

TEST(ByteBudget, AskedForRoomCachesGiveItBackOnce) {
  ByteBudget whole(10);
  ByteBudget cache(10, {.parent = &whole});
  ByteBudget requests(10, {.parent = &whole});
  std::size_t cached = 0;
  ASSERT_TRUE(cache.add(cached, 8));
  int asked = 0;
  requests.set_reclaim([&](std::size_t bytes) {
    ++asked;
    const std::size_t given = std::min(bytes, cached);
    cache.remove(cached, given);
    return given > 0;
  });
  std::size_t share = 0;
  EXPECT_TRUE(requests.add(share, 9));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(whole.held(), 9U);
  EXPECT_FALSE(requests.add(share, 11)) << "it can never fit";
  EXPECT_EQ(asked, 1) << "so nothing was given up for it";
}

}  // namespace
}  // namespace sightline
