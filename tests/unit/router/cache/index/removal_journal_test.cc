// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/index/removal_journal.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/cache/index/exact_index.h"
#include "router/cache/index/indexed_cache.h"

namespace sightline::index {
namespace {

using keys::BlockKey;

constexpr CacheId kA{1};
constexpr CacheId kB{2};
const std::vector<BlockKey> kClaimed{{7}, {3}, {5}};

TEST(RemovalJournal, DistinguishesRemovalsOfClaimedBlocks) {
  RemovalJournal journal;
  journal.removed(kA, std::vector<BlockKey>{{5}});
  const std::uint64_t position = journal.position();
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), false);
  journal.removed(kB, std::vector<BlockKey>{{5}});       // another engine's
  journal.removed(kA, std::vector<BlockKey>{{4}, {6}});  // blocks without a claim
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), false);
  journal.removed(kA, std::vector<BlockKey>{{9}, {7}});
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), true);
  EXPECT_EQ(journal.withdrawn_since(journal.position(), kA, kClaimed), false);
}

TEST(RemovalJournal, ADroppedEngineWithdrawsAllItsBlocksAndNoOthers) {
  RemovalJournal journal;
  journal.dropped(kA);
  EXPECT_EQ(journal.withdrawn_since(0, kA, kClaimed), true);
  EXPECT_EQ(journal.withdrawn_since(0, kB, kClaimed), false);
}

constexpr std::size_t kChunk = RemovalJournal::kChunkRemovals;

std::vector<BlockKey> keys_from(std::uint64_t first, std::size_t count) {
  std::vector<BlockKey> blocks(count);
  for (std::size_t i = 0; i < count; ++i) blocks[i] = {first + i};
  return blocks;
}

TEST(RemovalJournal, SaysThatItDoesNotKnowOnceItHasForgotten) {
  RemovalJournal journal({.chunks_max = 4, .chunks_per_engine_max = 2});
  const std::uint64_t position = journal.position();
  journal.removed(kA, keys_from(1'000, kChunk));
  journal.removed(kA, keys_from(2'000, kChunk));
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), false);
  journal.removed(kA, std::vector<BlockKey>{{9}});
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), std::nullopt);
  EXPECT_EQ(journal.withdrawn_since(position + 1, kA, kClaimed), false);
  journal.removed(kA, std::vector<BlockKey>{{3}});
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), true) << "enough is remembered";
}

TEST(RemovalJournal, AnEngineThatEvictsMuchPushesOutNoneOfAnothers) {
  RemovalJournal journal({.chunks_max = 40, .chunks_per_engine_max = 1'000});
  const std::uint64_t position = journal.position();
  for (std::uint32_t cache = 10; cache < 20; ++cache) {
    journal.removed({cache}, std::vector<BlockKey>{{5}});
  }
  for (int i = 0; i < 100; ++i) journal.removed(kA, keys_from(1'000, 10 * kChunk));
  for (std::uint32_t cache = 10; cache < 20; ++cache) {
    EXPECT_EQ(journal.withdrawn_since(position, {cache}, kClaimed), true);
  }
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), std::nullopt);
}

TEST(RemovalJournal, EnginesThatAllEvictShareItsMemoryEvenly) {
  constexpr std::uint32_t kEngines = 10;
  RemovalJournal journal({.chunks_max = 40, .chunks_per_engine_max = 1'000});
  // The first one has taken all before the others come.
  journal.removed({0}, keys_from(1'000, 100 * kChunk));
  std::vector<std::uint64_t> marks;
  for (int round = 0; round < 20; ++round) {
    marks.push_back(journal.position());
    for (std::uint32_t cache = 0; cache < kEngines; ++cache) {
      journal.removed({cache}, keys_from(1'000, kChunk));
    }
  }
  for (std::uint32_t cache = 0; cache < kEngines; ++cache) {
    EXPECT_EQ(journal.withdrawn_since(marks[marks.size() - 3], {cache}, kClaimed), false);
  }
}

TEST(RemovalJournal, UsesMemoryOnlyForRemovalsWithinItsLimit) {
  RemovalJournal journal;
  for (std::uint32_t cache = 0; cache < 1'000; ++cache) journal.dropped({cache});
  EXPECT_EQ(journal.bytes(), 0U);
  journal.removed(kA, kClaimed);
  EXPECT_LT(journal.bytes(), 8'192U);
  RemovalJournal small({.chunks_max = 10, .chunks_per_engine_max = 8});
  for (std::uint32_t cache = 0; cache < 100; ++cache) {
    small.removed({cache}, keys_from(0, 3 * kChunk));
  }
  EXPECT_LE(small.bytes(), 10U * 4'096);
}

TEST(RemovalJournal, WhatADroppedEngineTookIsThereForOthers) {
  RemovalJournal journal({.chunks_max = 10, .chunks_per_engine_max = 10});
  for (std::uint32_t cache = 10; cache < 100; ++cache) {
    journal.removed({cache}, keys_from(0, 5 * kChunk));
    journal.dropped({cache});
  }
  const std::uint64_t position = journal.position();
  journal.removed(kA, keys_from(1'000, 9 * kChunk));
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), false) << "nothing was given up";
}

TEST(RemovalJournal, AnswersUnknownForForgottenEngines) {
  RemovalJournal journal({.chunks_max = 4, .chunks_per_engine_max = 4, .idle_engines_max = 10});
  const std::uint64_t position = journal.position();
  journal.removed(kB, kClaimed);
  for (std::uint32_t cache = 100; cache < 200; ++cache) journal.dropped({cache});
  EXPECT_EQ(journal.withdrawn_since(position, {100}, kClaimed), std::nullopt);
  EXPECT_EQ(journal.withdrawn_since(position, kB, kClaimed), true) << "it has removals";
  EXPECT_EQ(journal.withdrawn_since(journal.position(), {100}, kClaimed), false);
}

// What a writer will write, known in advance: large portions, each of one engine.
struct Portion {
  CacheId cache;
  std::vector<BlockKey> blocks;  // empty: all blocks
};

constexpr std::uint64_t kBlocksThereAre = 20'000;

std::vector<Portion> portions_to_come(std::size_t count) {
  Rng rng(7);
  std::vector<Portion> portions(count);
  for (Portion& portion : portions) {
    portion.cache = {rng.below(3)};
    portion.blocks.resize(rng.below(20) == 0 ? 0 : 1 + rng.below(1'000));
    for (BlockKey& block : portion.blocks) block = {rng.next() % kBlocksThereAre};
  }
  return portions;
}

// The definition: the first call from the position on that withdraws one of the blocks.
std::uint64_t first_withdrawal(const std::vector<Portion>& portions, std::uint64_t position,
                               CacheId cache, const std::vector<BlockKey>& blocks) {
  for (; position < portions.size(); ++position) {
    const Portion& portion = portions[position];
    if (portion.cache != cache) continue;
    const bool withdraws = std::any_of(blocks.begin(), blocks.end(), [&](BlockKey block) {
      return std::find(portion.blocks.begin(), portion.blocks.end(), block) != portion.blocks.end();
    });
    if (portion.blocks.empty() || withdraws) break;
  }
  return position;
}

// The removals of an engine from one call to another, including the last.
std::size_t removals_of(const std::vector<Portion>& portions, CacheId cache, std::uint64_t from,
                        std::uint64_t to) {
  std::size_t count = 0;
  for (; from <= to && from < portions.size(); ++from) {
    if (portions[from].cache == cache) count += portions[from].blocks.size();
  }
  return count;
}

TEST(RemovalJournal, AnswersLikeANaiveOneWhileRemovalsAreWritten) {
  constexpr std::size_t kChunksEach = 10;
  const auto portions = portions_to_come(4'000);
  RemovalJournal journal({.chunks_max = 25, .chunks_per_engine_max = kChunksEach});
  std::atomic<std::uint64_t> wanted = 0;  // the writer continues up to here
  std::jthread writer([&] {
    for (const Portion& portion : portions) {
      while (journal.position() >= wanted) std::this_thread::yield();
      if (portion.blocks.empty()) journal.dropped(portion.cache);
      if (!portion.blocks.empty()) journal.removed(portion.cache, portion.blocks);
    }
  });
  Rng rng(8);
  std::array<std::size_t, 3> answers{};  // false, true, unknown
  while (journal.position() < portions.size() && !testing::Test::HasFailure()) {
    const CacheId cache{rng.below(3)};
    std::vector<BlockKey> blocks(rng.below(4));
    for (BlockKey& block : blocks) block = {rng.next() % kBlocksThereAre};
    wanted = journal.position() + 20;
    const std::uint64_t begin = journal.position();
    const std::uint64_t from = begin - std::min<std::uint64_t>(begin, rng.below(40));
    const auto answer = journal.withdrawn_since(from, cache, blocks);
    const std::uint64_t end = journal.position();  // a part of this one may have been seen too
    const std::uint64_t withdrawal = first_withdrawal(portions, from, cache, blocks);
    ++answers[answer ? *answer : 2];
    EXPECT_TRUE(answer != true || withdrawal <= end);
    EXPECT_TRUE(answer != false || withdrawal >= begin);
    EXPECT_TRUE(answer.has_value() ||
                removals_of(portions, cache, from, end) > (kChunksEach - 3) * kChunk)
        << from << " to " << end;
  }
  wanted = portions.size();
  for (const std::size_t count : answers) EXPECT_GT(count, 0U);
}

TEST(RemovalJournal, RecordsBlocksThatLeaveTheIndex) {
  using operations::Clear;
  const operations::CacheName name{.worker = "a"};
  const operations::Store store{.parent = {}, .keys = kClaimed};
  RemovalJournal journal;
  ExactIndex index(100);
  IndexedCache cache(kA, index, &journal);
  cache.take(name, store);
  EXPECT_EQ(journal.position(), 0U);
  cache.take(name, operations::Remove{.keys = {{3}}});
  EXPECT_EQ(journal.withdrawn_since(0, kA, kClaimed), true);
  const std::uint64_t position = journal.position();
  cache.take(name, Clear{});
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), true);
  const std::uint64_t dropped = journal.position();
  cache.take(name, Clear{});
  cache.take(name, Clear{.held = kClaimed});
  EXPECT_EQ(journal.position(), dropped) << "nothing was held";
  cache.take(name, store);
  cache.take(name, Clear{.held = kClaimed});
  EXPECT_EQ(journal.position(), dropped + 1) << "however many blocks";
}

}  // namespace
}  // namespace sightline::index
