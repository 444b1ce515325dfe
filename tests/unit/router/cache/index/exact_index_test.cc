// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/index/exact_index.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "tests/unit/router/cache/index/naive_index.h"

namespace sightline::index {
namespace {

using keys::BlockKey;

std::vector<BlockKey> chain(std::uint64_t from, std::size_t count) {
  std::vector<BlockKey> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back({from + i});
  return keys;
}

constexpr CacheId kA{1};
constexpr CacheId kB{2};

TEST(ExactIndex, IsEmptyBeforeTheFirstStore) {
  const ExactIndex index;
  EXPECT_TRUE(index.match(chain(0, 5)).caches.empty());
  EXPECT_EQ(index.match(chain(0, 5)).of(kA), CacheOverlap{.cache = kA});
  EXPECT_EQ(index.blocks(kA), 0U);
}

TEST(ExactIndex, CountsTheLeadingBlocksOfEachEngine) {
  ExactIndex index;
  index.store(kB, Tier::Gpu, chain(0, 3));
  index.store(kA, Tier::Gpu, chain(0, 5));
  const auto overlaps = index.match(chain(0, 9));
  ASSERT_EQ(overlaps.caches.size(), 2U);
  EXPECT_EQ(overlaps.caches[0], (CacheOverlap{kA, 5, 0, 0}));
  EXPECT_EQ(overlaps.caches[1], (CacheOverlap{kB, 3, 0, 0}));
  EXPECT_EQ(overlaps.of(kB).gpu_blocks, 3U);
}

TEST(ExactIndex, AHoleEndsTheRun) {
  ExactIndex index;
  index.store(kA, Tier::Gpu, chain(0, 10));
  index.remove(kA, Tier::Gpu, chain(4, 1));
  EXPECT_EQ(index.match(chain(0, 10)).of(kA).gpu_blocks, 4U);
  EXPECT_EQ(index.blocks(kA), 9U);
  index.remove(kA, Tier::Gpu, chain(0, 1));
  EXPECT_TRUE(index.match(chain(0, 10)).caches.empty());
}

TEST(ExactIndex, SlowerTiersContinueButNeverCountAsFaster) {
  ExactIndex index;
  index.store(kA, Tier::Gpu, chain(0, 2));
  index.store(kA, Tier::Cpu, chain(1, 3));      // 1 2 3
  index.store(kA, Tier::Storage, chain(4, 1));  // 4
  index.store(kA, Tier::Gpu, chain(5, 1));      // 5, behind storage
  EXPECT_EQ(index.match(chain(0, 9)).of(kA), (CacheOverlap{kA, 2, 2, 2}));
  EXPECT_EQ(index.blocks(kA), 3U);
  EXPECT_EQ(index.blocks_total(), 6U);
}

TEST(ExactIndex, StoringTwiceIsStoringOnce) {
  ExactIndex index;
  index.store(kA, Tier::Gpu, chain(0, 2));
  index.store(kA, Tier::Gpu, chain(0, 2));
  EXPECT_EQ(index.blocks(kA), 2U);
  index.remove(kA, Tier::Gpu, chain(0, 2));
  EXPECT_EQ(index.blocks(kA), 0U);
  EXPECT_EQ(index.blocks_total(), 0U);
}

TEST(ExactIndex, RemovingWhatIsNotHeldChangesNothing) {
  ExactIndex index;
  index.store(kA, Tier::Gpu, chain(0, 2));
  index.remove(kB, Tier::Gpu, chain(0, 2));
  index.remove(kA, Tier::Cpu, chain(0, 2));
  index.remove(kA, Tier::Gpu, chain(7, 2));
  EXPECT_EQ(index.match(chain(0, 2)).of(kA).gpu_blocks, 2U);
}

TEST(ExactIndex, DropForgetsOneEngineOnAllTiersAndNoOther) {
  ExactIndex index;
  index.store(kA, Tier::Gpu, chain(0, 4));
  index.store(kA, Tier::Storage, chain(4, 4));
  index.store(kB, Tier::Gpu, chain(2, 4));
  index.drop(kA);
  EXPECT_EQ(index.blocks(kA), 0U);
  EXPECT_TRUE(index.held(kA, Tier::Storage).empty());
  EXPECT_EQ(index.held(kB, Tier::Gpu), chain(2, 4));
  EXPECT_EQ(index.blocks_total(), 4U);
}

TEST(ExactIndex, CountsRefusedBlocksOfEachEngineUntilADrop) {
  ExactIndex index(3);
  index.store(kA, Tier::Gpu, chain(0, 5));
  index.store(kB, Tier::Gpu, chain(0, 3));
  EXPECT_EQ(index.refused(kA), 2U);
  EXPECT_EQ(index.refused(kB), 0U) << "nothing of it is missing";
  index.drop(kA);
  EXPECT_EQ(index.refused(kA), 0U);
  EXPECT_EQ(index.refused_total(), 2U);
}

TEST(ExactIndex, RefusesNewKeysWhenFullAndClaimsNothingForThem) {
  ExactIndex index(3);
  index.store(kA, Tier::Gpu, chain(0, 5));
  EXPECT_EQ(index.refused_total(), 2U);
  EXPECT_EQ(index.match(chain(0, 5)).of(kA).gpu_blocks, 3U);
  index.store(kB, Tier::Gpu, chain(0, 3));  // known keys need no room
  EXPECT_EQ(index.blocks(kB), 3U);
  index.remove(kA, Tier::Gpu, chain(2, 1));
  index.remove(kB, Tier::Gpu, chain(2, 1));
  index.store(kA, Tier::Gpu, chain(2, 1));  // there is room again
  EXPECT_EQ(index.match(chain(0, 5)).of(kA).gpu_blocks, 3U);
}

std::vector<BlockKey> held_by(const IndexStatistics& index, CacheId cache) {
  std::vector<BlockKey> blocks;
  for (const auto tier : {Tier::Gpu, Tier::Cpu, Tier::Storage}) {
    const auto held = index.held(cache, tier);
    blocks.insert(blocks.end(), held.begin(), held.end());
  }
  return blocks;
}

// A seeded history of operations on both indexes. Compares them after each step.
void compare_over_history(std::uint64_t seed, std::size_t blocks_max) {
  Rng rng(seed);
  ExactIndex exact(blocks_max);
  NaiveIndex naive(blocks_max);
  // Some engines have a known capacity.
  std::vector<ExactIndex::Bound> bounds;
  for (std::uint32_t engine = 0; engine < 2; ++engine) {
    bounds.push_back({.cache = CacheId{engine}, .engine_blocks = 1 + rng.below(12)});
    naive.set_bound(bounds.back().cache, bounds.back().engine_blocks);
  }
  exact.set_bounds(bounds);
  // Few keys in a tree of shared prefixes, because engines and prompts must meet often.
  std::vector<std::vector<BlockKey>> prompts;
  for (std::uint64_t p = 0; p < 8; ++p) {
    auto keys = chain(0, rng.below(12));
    const auto tail = chain(1000 * (p + 1), rng.below(12));
    keys.insert(keys.end(), tail.begin(), tail.end());
    prompts.push_back(keys);
  }
  bool reclaimed = true;
  for (int step = 0; step < 400; ++step) {
    const CacheId cache{rng.below(5)};
    const auto tier = static_cast<Tier>(rng.below(operations::kTierCount));
    const auto& prompt = prompts[rng.below(8)];
    const auto from = prompt.empty() ? 0 : rng.below(static_cast<std::uint32_t>(prompt.size()));
    const auto count = rng.below(static_cast<std::uint32_t>(prompt.size() - from + 1));
    const auto blocks = std::span(prompt).subspan(rng.below(3) == 0 ? from : 0, count);
    const auto action = rng.below(22);
    const std::vector<BlockKey> keys(blocks.begin(), blocks.end());
    if (action < 11) {
      naive.store(cache, tier, keys);
      exact.apply(cache, operations::Store{.tier = tier, .parent = {}, .keys = keys});
      if (!exact.take_gave_way().empty()) reclaimed = false;
    } else if (action < 19) {
      naive.remove(cache, tier, keys);
      exact.apply(cache, operations::Remove{.tier = tier, .keys = keys});
    } else if (action == 21) {
      naive.drop(cache);
      exact.clear_later(cache);
      reclaimed = false;
    } else {
      naive.drop(cache);
      operations::Clear clear;
      if (action == 20) clear.held = held_by(exact, cache);
      exact.apply(cache, clear);
    }
    for (std::uint32_t each = 0; each < 5; ++each) {
      const CacheId one{each};
      ASSERT_EQ(exact.digest(one), naive.digest(one)) << "step " << step << ", cache " << each;
      ASSERT_EQ(exact.limits(one), naive.limits(one)) << "step " << step << ", cache " << each;
    }
    ASSERT_EQ(exact.blocks(cache), naive.blocks(cache));
    ASSERT_EQ(exact.held(cache, tier), naive.held(cache, tier));
    for (const auto& query : prompts) {
      ASSERT_EQ(exact.match(query).caches, naive.match(query).caches) << "step " << step;
    }
    ASSERT_GE(exact.blocks_total(), naive.blocks_total());
    reclaimed = reclaimed || (rng.below(4) == 0 && !exact.reclaim_some());
    if (reclaimed) {
      ASSERT_EQ(exact.blocks_total(), naive.blocks_total());
    }
  }
}

TEST(ExactIndex, AgreesWithTheNaiveIndexOverRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    compare_over_history(seed, kBlocksMax);
    if (HasFatalFailure()) return;
  }
}

TEST(ExactIndex, AgreesWithTheNaiveIndexWhenRepeatedlyFull) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    compare_over_history(seed, 10 + seed % 30);
    if (HasFatalFailure()) return;
  }
}

TEST(ExactIndex, DigestCoversEachTierAndIsEmptyAfterADrop) {
  ExactIndex index(5);
  index.store(kA, Tier::Gpu, chain(0, 9));  // of which four are refused
  index.store(kA, Tier::Cpu, chain(0, 2));
  index.store(kB, Tier::Gpu, chain(0, 5));
  EXPECT_EQ(index.digest(kA).of(Tier::Gpu), index.digest(kB).of(Tier::Gpu));
  EXPECT_EQ(index.digest(kA).of(Tier::Gpu).count, 5U);
  EXPECT_EQ(index.digest(kA).of(Tier::Cpu).count, 2U);
  index.drop(kA);
  EXPECT_EQ(index.digest(kA), operations::CacheDigest{});
  EXPECT_EQ(index.digest(kB).of(Tier::Gpu).count, 5U);
}

TEST(ExactIndex, DeferredClearHidesBlocksAndFreesMemoryInSteps) {
  ExactIndex index;
  const auto many = chain(0, 100'000);
  index.store(kA, Tier::Gpu, many);
  index.store(kB, Tier::Gpu, chain(0, 10));
  index.clear_later(kA);
  EXPECT_EQ(index.match(many).of(kA).gpu_blocks, 0U);
  EXPECT_EQ(index.match(many).of(kB).gpu_blocks, 10U);
  EXPECT_EQ(index.blocks(kA), 0U);
  EXPECT_EQ(index.blocks_total(), many.size()) << "nobody has reclaimed";
  auto total = index.blocks_total();
  int steps = 1;
  for (; index.reclaim_some(); ++steps) {
    ASSERT_LE(total - index.blocks_total(), 1'024U) << "a step is a step";
    total = index.blocks_total();
  }
  EXPECT_GT(steps, 90);
  EXPECT_EQ(index.blocks_total(), 10U);
  EXPECT_FALSE(index.reclaim_some());
}

TEST(ExactIndex, AFullIndexReclaimsBeforeItRefuses) {
  ExactIndex index(20'000);
  index.store(kA, Tier::Gpu, chain(0, 20'000));
  index.clear_later(kA);
  index.store(kB, Tier::Gpu, chain(50'000, 20'000));
  EXPECT_EQ(index.refused_total(), 0U);
  EXPECT_EQ(index.blocks(kB), 20'000U);
}

TEST(ExactIndex, WhatIsClearedAgainAndAgainDoesNotPileUp) {
  ExactIndex index;
  index.store(kB, Tier::Gpu, chain(0, 20'000));
  std::uint64_t most = 0;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    index.store(kA, Tier::Gpu, chain(i << 32U, 1'000));
    index.clear_later(kA);
    most = std::max(most, index.blocks_total());
  }
  EXPECT_LE(most, 20'000U * 2 + 20'000U) << "200,000 were stored";
  while (index.reclaim_some()) {
  }
  EXPECT_EQ(index.blocks_total(), 20'000U);
}

TEST(ExactIndex, ReaderSeesSmallOperationsWhole) {
  ExactIndex index;
  const auto blocks = chain(0, 64);
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    for (int i = 0; i < 2000; ++i) {
      index.store(kA, Tier::Gpu, blocks);
      index.remove(kA, Tier::Gpu, blocks);
    }
    done = true;
  });
  while (!done) {
    const auto held = index.match(blocks).of(kA).gpu_blocks;
    ASSERT_TRUE(held == 0 || held == 64) << held;
  }
}

TEST(ExactIndex, ReaderDoesNotWaitForALargeOperation) {
  ExactIndex index;
  const auto many = chain(0, 200'000);
  std::atomic<bool> enough = false;
  std::atomic<bool> done = false;
  std::jthread writer([&] {
    for (int i = 0; i < 100 && !enough; ++i) {
      index.store(kA, Tier::Gpu, many);
      index.remove(kA, Tier::Gpu, many);
    }
    done = true;
  });
  // Only the first block: a store is under way. Only the last one: a removal is under way.
  for (const auto& ends : {many, std::vector(many.rbegin(), many.rend())}) {
    const std::vector<BlockKey> near_then_far{ends.front(), ends.back()};
    bool seen = false;
    while (!seen && !done) seen = index.match(near_then_far).of(kA).gpu_blocks == 1;
    EXPECT_TRUE(seen);
  }
  enough = true;
}

TEST(ExactIndex, ReaderSeesADropWhole) {
  ExactIndex index;
  const auto many = chain(0, 200'000);
  std::vector<BlockKey> blocks;  // far apart in the table, so no single step takes all
  for (std::size_t i = 0; i < many.size(); i += 3'000) blocks.push_back(many[i]);
  index.store(kB, Tier::Gpu, many);
  std::atomic<bool> done = false;
  std::atomic<int> stores = 0;  // begun and ended. Odd: a store is under way
  std::jthread writer([&] {
    for (int i = 0; i < 5; ++i) {
      ++stores;
      index.store(kA, Tier::Gpu, many);
      ++stores;
      if (i % 2 == 0) {
        index.drop(kA);
      } else {
        index.drop_known(kA, many);
      }
    }
    done = true;
  });
  while (!done) {
    const int before = stores;
    const auto overlaps = index.match(blocks);
    const bool storing = before % 2 == 1 || before != stores;
    const auto held = overlaps.of(kA).gpu_blocks;
    ASSERT_TRUE(storing || held == 0 || held == blocks.size()) << held;
    ASSERT_EQ(overlaps.of(kB).gpu_blocks, blocks.size());
  }
  writer.join();
  EXPECT_EQ(index.blocks_total(), many.size());
}

TEST(ExactIndex, AnOperationThatADropMeetsLeavesNothingBehind) {
  ExactIndex index;
  const auto many = chain(0, 200'000);
  for (int i = 0; i < 3; ++i) {
    std::jthread writer([&] { index.store(kA, Tier::Gpu, many); });
    while (index.blocks(kA) == 0) std::this_thread::yield();
    index.drop(kA);
    writer.join();
    EXPECT_EQ(index.match(many).of(kA).gpu_blocks, 0U);
    EXPECT_EQ(index.blocks(kA), 0U);
    EXPECT_EQ(index.blocks_total(), 0U);
  }
}

TEST(ExactIndex, AWriterGetsInBesideLookUpsWithoutPause) {
  ExactIndex index;
  const auto read = chain(0, 2'000);
  const auto written = chain(7, 512);
  index.store(kA, Tier::Gpu, read);
  std::vector<std::jthread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) ASSERT_EQ(index.match(read).of(kA).gpu_blocks, read.size());
    });
  }
  for (int i = 0; i < 100; ++i) {
    index.store(kB, Tier::Gpu, written);
    index.remove(kB, Tier::Gpu, written);
  }
  EXPECT_EQ(index.blocks(kB), 0U);
}

TEST(ExactIndex, ListsEachBlockOnceWhileTheTableResizes) {
  ExactIndex index;
  auto own = chain(0, 20'000);
  index.store(kA, Tier::Gpu, own);
  std::sort(own.begin(), own.end());
  const auto others = chain(7, 200'000);
  std::jthread writer([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      index.store(kB, Tier::Gpu, others);
      index.drop(kB);
    }
  });
  for (int i = 0; i < 20; ++i) ASSERT_EQ(index.held(kA, Tier::Gpu), own);
}

}  // namespace
}  // namespace sightline::index
