// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/media_cache.h"

#include <gtest/gtest.h>

namespace sightline::core {
namespace {

TEST(MediaCache, ForgetsTheLeastRecentlyUsedItem) {
  MediaCache cache(10);
  cache.add({"a", 1, 4});
  cache.add({"b", 2, 4});
  EXPECT_EQ(cache.find("a"), 1U);
  cache.add({"c", 3, 4});
  EXPECT_FALSE(cache.find("b").has_value());
  EXPECT_EQ(cache.find("a"), 1U);
  EXPECT_EQ(cache.find("c"), 3U);
}

TEST(MediaCache, KeepsTheFirstItemOfAnIdentifier) {
  MediaCache cache(10);
  cache.add({"a", 16, 1});
  cache.add({"a", 99, 1});
  EXPECT_EQ(cache.find("a"), 16U);
}

TEST(MediaCache, KeepsNoItemBeyondItsCapacity) {
  MediaCache none(0);
  none.add({"a", 1, 0});
  EXPECT_FALSE(none.find("a").has_value());
  MediaCache small(5);
  small.add({"a", 1, 5});
  small.add({"b", 1, 6});
  EXPECT_TRUE(small.find("a").has_value());
  EXPECT_FALSE(small.find("b").has_value());
}

TEST(MediaCache, ClearRemovesAllItems) {
  MediaCache cache(5);
  cache.add({"a", 1, 5});
  cache.clear();
  EXPECT_FALSE(cache.find("a").has_value());
  cache.add({"b", 1, 5});
  EXPECT_TRUE(cache.find("b").has_value());
}

}  // namespace
}  // namespace sightline::core
