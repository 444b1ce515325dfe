// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <functional>

#include <gtest/gtest.h>
#include <malloc.h>

#include "common/base/byte_budget.h"

#include "router/cache/index/exact_index.h"

namespace sightline::index {
namespace {

using keys::BlockKey;

constexpr CacheId kA{1};
constexpr CacheId kB{2};

std::vector<BlockKey> chain(std::uint64_t from, std::size_t count) {
  std::vector<BlockKey> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back({from + i});
  return keys;
}

TEST(ExactIndexRoom, OverfullEngineMakesRoomForOthers) {
  ExactIndex index(20'000);
  index.set_bounds({{.cache = kA, .engine_blocks = 1'000}, {.cache = kB, .engine_blocks = 8'000}});
  index.store(kB, Tier::Gpu, chain(1'000'000, 1'000));
  index.store(kA, Tier::Gpu, chain(0, 30'000));
  EXPECT_EQ(index.blocks(kA), 19'000U) << "nobody needs the room";
  EXPECT_EQ(index.limits(kA), (CacheLimits{.engine_blocks = 1'000, .refused = 11'000}));
  EXPECT_FALSE(index.has_room());
  index.store(kB, Tier::Gpu, chain(1'001'000, 7'000));
  EXPECT_EQ(index.blocks(kB), 8'000U);
  EXPECT_EQ(index.refused(kB), 0U);
  EXPECT_EQ(index.blocks(kA), 0U);
  EXPECT_TRUE(index.limits(kA).gave_way);
  EXPECT_EQ(index.take_gave_way(), std::vector{kA});
  EXPECT_TRUE(index.take_gave_way().empty());
  index.store(kA, Tier::Gpu, chain(0, 30'000));
  EXPECT_EQ(index.blocks(kA), 1'000U) << "from now on it is held to its bound";
  index.drop(kA);
  EXPECT_EQ(index.limits(kA), CacheLimits{.engine_blocks = 1'000});
}

TEST(ExactIndexRoom, UnknownCapacityGetsAnEqualShareWhenFull) {
  ExactIndex index(8'000);
  index.store(kA, Tier::Gpu, chain(0, 8'000));
  index.store(kB, Tier::Cpu, chain(1'000'000, 4'000));
  EXPECT_EQ(index.digest(kB).of(Tier::Cpu).count, 4'000U);
  EXPECT_TRUE(index.limits(kA).gave_way);
  index.store(kA, Tier::Gpu, chain(0, 8'000));
  EXPECT_EQ(index.blocks(kA), 4'000U);
  EXPECT_EQ(index.digest(kB).of(Tier::Cpu).count, 4'000U);
}

TEST(ExactIndexRoom, IsFullWithoutMemoryAndFreesUnneededMemory) {
  ByteBudget memory(std::size_t{2} << 20U);
  ExactIndex index(1'000'000, &memory);
  index.store(kA, Tier::Gpu, chain(0, 100'000));
  const std::uint64_t held = index.blocks(kA);
  EXPECT_GT(held, 15'000U);
  EXPECT_LT(held, 40'000U);
  EXPECT_EQ(index.refused(kA), 100'000U - held);
  EXPECT_FALSE(index.has_room());
  EXPECT_EQ(memory.room(), 0U);
  index.store(kB, Tier::Gpu, chain(0, 100));
  EXPECT_TRUE(index.limits(kA).gave_way) << "a holder takes memory too";
  EXPECT_EQ(index.blocks(kB), 100U);
  index.drop(kA);
  index.drop(kB);
  EXPECT_GE(memory.room(), std::size_t{1} << 20U);
}

// The bytes of the heap, from the allocator.
std::size_t heap_bytes() {
  const auto used = mallinfo2();
  return used.uordblks + used.hblkhd;
}

TEST(ExactIndexRoom, KeepsNoTableForBlocksThatAreGone) {
  const auto blocks = chain(0, 200'000);  // their buckets take 2 to 3 MB
  const std::vector<std::function<void(ExactIndex&)>> ways = {
      [](ExactIndex& index) { index.drop(kA); },
      [&](ExactIndex& index) { index.drop_known(kA, blocks); },
      [&](ExactIndex& index) { index.remove(kA, Tier::Gpu, blocks); },
  };
  for (const auto& empty : ways) {
    ByteBudget memory(std::size_t{1} << 30U);
    ExactIndex index(1'000'000, &memory);
    const std::size_t heap_before = heap_bytes();
    index.store(kA, Tier::Gpu, blocks);
    const std::size_t heap = heap_bytes() - heap_before;
    EXPECT_LT(heap, memory.held() + memory.held() / 8) << "it is charged what it takes";
    empty(index);
    EXPECT_EQ(index.blocks_total(), 0U);
    EXPECT_LT(heap_bytes(), heap_before + (std::size_t{1} << 20U));
    EXPECT_LE(memory.held(), std::size_t{2} << 20U);
  }
}

TEST(ExactIndexRoom, KeepsNoRoomForHoldersThatAreGone) {
  constexpr std::uint32_t kEngines = 64;
  const auto blocks = chain(0, 5'000);
  const auto remove = [&](ExactIndex& index, CacheId cache) {
    index.remove(cache, Tier::Gpu, blocks);
  };
  const auto drop = [](ExactIndex& index, CacheId cache) { index.drop(cache); };
  for (const auto& leave : {std::function<void(ExactIndex&, CacheId)>(remove), {drop}}) {
    ByteBudget memory(std::size_t{1} << 30U);
    ExactIndex index(1'000'000, &memory);
    const std::size_t heap_before = heap_bytes();
    for (std::uint32_t i = 0; i < kEngines; ++i) index.store(CacheId{i}, Tier::Gpu, blocks);
    for (std::uint32_t i = 1; i < kEngines; ++i) leave(index, CacheId{i});
    EXPECT_EQ(index.held(CacheId{0}, Tier::Gpu), blocks);
    EXPECT_LT(heap_bytes() - heap_before, memory.held());
  }
}

TEST(ExactIndexRoom, ShrinksDuringALargeRemovalAndKeepsTheRest) {
  constexpr std::size_t kBytesMax = std::size_t{2} << 20U;  // its buckets alone took more
  const auto blocks = chain(0, 200'000);
  ByteBudget memory(std::size_t{1} << 30U);
  ExactIndex index(1'000'000, &memory);
  index.store(kA, Tier::Gpu, blocks);
  index.store(kB, Tier::Gpu, std::span{blocks}.first(2'000));
  index.drop(kA);
  EXPECT_EQ(index.held(kB, Tier::Gpu), chain(0, 2'000));
  EXPECT_LE(memory.held(), kBytesMax);
  index.store(kA, Tier::Gpu, blocks);
  index.remove(kA, Tier::Gpu, std::span{blocks}.subspan(1'000));
  EXPECT_EQ(index.held(kA, Tier::Gpu), chain(0, 1'000));
  EXPECT_EQ(index.held(kB, Tier::Gpu), chain(0, 2'000));
  EXPECT_LE(memory.held(), kBytesMax);
}

TEST(ExactIndexRoom, NoEngineLosesBlocksWithinItsLimit) {
  ExactIndex index(1'000);
  index.set_bounds({{.cache = kA, .engine_blocks = 900}, {.cache = kB, .engine_blocks = 900}});
  index.store(kA, Tier::Gpu, chain(0, 900));
  index.store(kB, Tier::Gpu, chain(1'000'000, 900));
  EXPECT_EQ(index.blocks(kA), 900U);
  EXPECT_EQ(index.blocks(kB), 100U);
  EXPECT_EQ(index.refused(kB), 800U);
  EXPECT_TRUE(index.take_gave_way().empty());
}

}  // namespace
}  // namespace sightline::index
