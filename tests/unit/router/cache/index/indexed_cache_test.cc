// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/index/indexed_cache.h"

#include <gtest/gtest.h>

#include "router/cache/index/exact_index.h"

namespace sightline::index {
namespace {

using keys::BlockKey;
using operations::Clear;
using operations::Remove;
using operations::Store;

constexpr CacheId kCache{3};
constexpr CacheId kOther{4};
const std::vector<BlockKey> kBlocks = {{1}, {2}, {3}};
const operations::CacheName kName{.worker = "a", .rank = 1};

TEST(IndexedCache, PutsWhatHappensUnderItsOwnNumber) {
  ExactIndex index;
  IndexedCache cache(kCache, index);
  IndexedCache other(kOther, index);
  cache.take(kName, Store{.parent = {}, .keys = kBlocks});
  other.take(kName, Store{.parent = {}, .keys = {kBlocks[0]}});
  EXPECT_EQ(index.match(kBlocks).of(kCache).gpu_blocks, 3U);
  EXPECT_EQ(index.match(kBlocks).of(kOther).gpu_blocks, 1U);
  cache.take(kName, Remove{.keys = {kBlocks[1]}});
  EXPECT_EQ(index.match(kBlocks).of(kCache).gpu_blocks, 1U);
  cache.take(kName, Clear{});
  EXPECT_EQ(index.blocks(kCache), 0U);
  EXPECT_EQ(index.blocks(kOther), 1U);
}

TEST(IndexedCache, KeepsTiersApart) {
  ExactIndex index;
  IndexedCache cache(kCache, index);
  cache.take(kName, Store{.tier = Tier::Cpu, .parent = {}, .keys = kBlocks});
  EXPECT_EQ(index.match(kBlocks).of(kCache).cpu_blocks, 3U);
  cache.take(kName, Remove{.tier = Tier::Gpu, .keys = kBlocks});
  EXPECT_EQ(index.match(kBlocks).of(kCache).cpu_blocks, 3U);
}

TEST(IndexedCache, WritesTheJournalAfterTheIndex) {
  ExactIndex index;
  RemovalJournal journal;
  IndexedCache cache(kCache, index, &journal);
  cache.take(kName, Store{.parent = {}, .keys = kBlocks});
  EXPECT_EQ(journal.withdrawn_since(0, kCache, kBlocks), false);
  cache.take(kName, Remove{.keys = {kBlocks[2]}});
  EXPECT_EQ(journal.withdrawn_since(0, kCache, kBlocks), true);
  EXPECT_EQ(journal.withdrawn_since(0, kOther, kBlocks), false);
}

TEST(IndexedCache, DeferredClearLeavesItsMemoryToOthers) {
  ExactIndex index;
  RemovalJournal journal;
  IndexedCache cache(kCache, index, &journal, Reclaim::Later);
  cache.take(kName, Store{.parent = {}, .keys = kBlocks});
  cache.take(kName, Clear{});
  EXPECT_EQ(index.blocks(kCache), 0U);
  EXPECT_EQ(journal.withdrawn_since(0, kCache, kBlocks), true);
  EXPECT_EQ(index.blocks_total(), 3U);
  while (index.reclaim_some()) {
  }
  EXPECT_EQ(index.blocks_total(), 0U);
}

TEST(IndexedCache, ClearingACacheThatHoldsNothingIsNoLoss) {
  ExactIndex index;
  RemovalJournal journal;
  IndexedCache cache(kCache, index, &journal);
  cache.take(kName, Clear{});
  EXPECT_EQ(journal.position(), 0U);
  cache.take(kName, Store{.parent = {}, .keys = kBlocks});
  cache.take(kName, Clear{.held = kBlocks});
  cache.take(kName, Clear{.held = kBlocks});
  EXPECT_EQ(journal.position(), 1U);
}

}  // namespace
}  // namespace sightline::index
