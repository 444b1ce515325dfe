// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/window_group.h"

#include <numeric>

#include <gtest/gtest.h>

#include "simulator/core/prefix_cache.h"

namespace sightline::core {
namespace {

std::vector<BlockHash> blocks_from(std::uint8_t first, std::size_t count) {
  std::vector<BlockHash> blocks(count);
  for (std::size_t i = 0; i < count; ++i) blocks[i][31] = static_cast<std::uint8_t>(first + i);
  return blocks;
}

TEST(WindowGroup, HitEndsAtTheLastHeldWindow) {
  WindowGroup group(2, 6);
  const auto prompt = blocks_from(0, 6);
  EXPECT_EQ(group.longest_hit(prompt), 0U);
  EXPECT_TRUE(group.keep(prompt).empty());
  EXPECT_EQ(group.longest_hit(prompt), 6U);
  EXPECT_EQ(group.keep(blocks_from(100, 3)), blocks_from(0, 3));
  EXPECT_EQ(group.longest_hit(prompt), 6U) << "what lies before the window does not matter";
  EXPECT_EQ(group.longest_hit(std::span(prompt).first(4)), 0U);
  group.keep(blocks_from(110, 2));
  EXPECT_EQ(group.longest_hit(prompt), 0U);
}

TEST(WindowGroup, GroupWithoutWindowLimitsNothing) {
  const WindowGroup group(0, 0);
  EXPECT_EQ(group.longest_hit(blocks_from(0, 6)), 6U);
}

TEST(WindowGroup, HybridCacheFindsWhatBothGroupsHold) {
  // The group with a window gets 10 of the blocks.
  PrefixCache cache({.block_size = 4, .blocks = 160, .window_blocks = 2});
  const auto serve = [&](TokenId first, std::size_t tokens) {
    std::vector<TokenId> prompt(tokens);
    std::iota(prompt.begin(), prompt.end(), first);
    Sequence sequence(prompt, {});
    const std::size_t cached = cache.match(sequence);
    EXPECT_TRUE(cache.grow(sequence, tokens));
    cache.release(sequence);
    return cached;
  };
  EXPECT_EQ(serve(0, 33), 0U);
  const auto events = cache.take_events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<BlockStored>(events[0]).group, CacheGroup::Full);
  EXPECT_EQ(std::get<BlockStored>(events[1]).group, CacheGroup::SlidingWindow);
  EXPECT_EQ(serve(0, 33), 32U);
  serve(1000, 41);
  EXPECT_EQ(serve(0, 33), 0U) << "though the other group holds all of it";
}

}  // namespace
}  // namespace sightline::core
