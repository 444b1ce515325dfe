// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/publisher/held_blocks.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::publisher {
namespace {

using keys::BlockKey;
using operations::CacheDigest;
using operations::Clear;
using operations::Operation;
using operations::Remove;
using operations::Store;
using operations::Tier;

std::vector<ListedBlock> rest_of_snapshot(HeldBlocks& held) {
  std::vector<ListedBlock> blocks;
  while (const auto block = held.next_of_snapshot()) blocks.push_back(*block);
  return blocks;
}

TEST(HeldBlocksOfAStream, KeepTheirFirstStoresOrderWithParentAndTiers) {
  HeldBlocks held(10);
  held.apply(Store{.tier = Tier::Gpu, .parent = {}, .keys = {{5}, {3}}});
  held.apply(Store{.tier = Tier::Cpu, .parent = BlockKey{5}, .keys = {{3}, {4}}});
  held.apply(Store{.tier = Tier::Gpu, .parent = BlockKey{9}, .keys = {{3}}});
  held.apply(Remove{.tier = Tier::Cpu, .keys = {{4}}});
  held.begin_snapshot();
  const std::vector<ListedBlock> expected = {{.key = {5}, .parent = {}, .tiers = 1},
                                             {.key = {3}, .parent = BlockKey{5}, .tiers = 3}};
  EXPECT_EQ(rest_of_snapshot(held), expected);
}

TEST(HeldBlocksOfAStream, BlocksAboveTheLimitAreReportedUntilACacheIsEmpty) {
  HeldBlocks held(2);
  held.apply(Store{.tier = Tier::Gpu, .parent = {}, .keys = {{1}, {2}}});
  EXPECT_FALSE(held.is_capped());
  held.apply(Store{.tier = Tier::Cpu, .parent = {}, .keys = {{1}}});
  EXPECT_FALSE(held.is_capped());
  held.apply(Store{.tier = Tier::Gpu, .parent = BlockKey{2}, .keys = {{3}}});
  EXPECT_TRUE(held.is_capped());
  EXPECT_EQ(held.left_out_total(), 1U);
  held.apply(Remove{.tier = Tier::Gpu, .keys = {{2}, {3}}});
  EXPECT_TRUE(held.is_capped());
  EXPECT_EQ(held.size(), 1U);
  held.apply(Clear{});
  EXPECT_FALSE(held.is_capped());
  EXPECT_EQ(held.digest(), CacheDigest{});
}

TEST(HeldBlocksOfAStream, SnapshotStaysUnchangedWhenTheCacheIsRefilled) {
  HeldBlocks held(10);
  held.apply(Store{.tier = Tier::Gpu, .parent = {}, .keys = {{1}, {2}, {3}}});
  held.begin_snapshot();
  EXPECT_EQ(held.next_of_snapshot()->key, BlockKey{1});
  held.apply(Remove{.tier = Tier::Gpu, .keys = {{2}}});
  held.apply(Clear{});
  held.apply(Store{.tier = Tier::Cpu, .parent = {}, .keys = {{3}, {4}}});
  held.apply(Clear{});
  const std::vector<ListedBlock> expected = {{.key = {2}, .parent = BlockKey{1}, .tiers = 1},
                                             {.key = {3}, .parent = BlockKey{2}, .tiers = 1}};
  EXPECT_EQ(rest_of_snapshot(held), expected);
  EXPECT_EQ(held.size(), 0U);
}

// The held blocks in the simplest form.
struct Model {
  std::set<std::pair<std::uint64_t, Tier>> blocks;
  CacheDigest digest;

  void apply(const Operation& operation) {
    if (std::holds_alternative<Clear>(operation)) *this = {};
    if (const auto* store = std::get_if<Store>(&operation)) {
      for (const auto key : store->keys) {
        if (blocks.insert({key.value, store->tier}).second) digest.of(store->tier).add(key);
      }
    }
    if (const auto* remove = std::get_if<Remove>(&operation)) {
      for (const auto key : remove->keys) {
        if (blocks.erase({key.value, remove->tier}) > 0) digest.of(remove->tier).remove(key);
      }
    }
  }
};

Operation drawn_operation(Rng& rng, std::uint32_t keys, std::uint32_t clear_every) {
  const auto tier = static_cast<Tier>(rng.below(operations::kTierCount));
  std::vector<BlockKey> some(1 + rng.below(4));
  const std::uint32_t from = rng.below(keys);
  for (std::size_t i = 0; i < some.size(); ++i) some[i] = {from + i};
  if (rng.below(clear_every) == 0) return Clear{};
  if (rng.below(2) == 0) return Remove{.tier = tier, .keys = some};
  Store store{.tier = tier, .parent = {}, .keys = some};
  if (from > 0) store.parent = BlockKey{from - 1};
  return store;
}

TEST(HeldBlocksOfAStream, BlocksAndSnapshotsEqualANaiveModel) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    HeldBlocks held(1'000'000);
    Model model;
    const std::uint32_t keys = 4 + rng.below(200);
    for (int i = 0; i < 200; ++i) {
      const Operation operation = drawn_operation(rng, keys, 100);
      held.apply(operation);
      model.apply(operation);
    }
    const Model then = model;
    std::map<std::uint64_t, std::uint8_t> dumped;
    held.begin_snapshot();
    for (bool is_more = true; is_more;) {
      for (std::uint32_t i = rng.below(4); i > 0; --i) {
        const Operation operation = drawn_operation(rng, keys, 400);
        held.apply(operation);
        model.apply(operation);
      }
      for (std::uint32_t i = rng.below(4); i > 0 && is_more; --i) {
        const auto block = held.next_of_snapshot();
        is_more = block.has_value();
        if (!is_more) break;
        ASSERT_TRUE(dumped.emplace(block->key.value, block->tiers).second);
      }
    }
    Model made;
    for (const auto& [key, tiers] : dumped) {
      for (std::uint32_t tier = 0; tier < operations::kTierCount; ++tier) {
        if ((tiers >> tier & 1U) == 1) made.blocks.insert({key, static_cast<Tier>(tier)});
      }
    }
    EXPECT_EQ(made.blocks, then.blocks) << "seed " << seed;
    EXPECT_EQ(held.digest(), model.digest) << "seed " << seed;
    EXPECT_EQ(held.kept_for_snapshot(), 0U);
  }
}

// 2,000,000 blocks: the slots and their hash table, whose parts grow at about the same time.
TEST(HeldBlocksOfAStream, TakeAtMost44BytesEach) {
  constexpr std::size_t kBlocks = 2'000'000;
  HeldBlocks held(kBlocks);
  Rng rng(7);
  std::vector<BlockKey> run(100);
  for (std::size_t i = 0; i < kBlocks / run.size(); ++i) {
    for (auto& key : run) key = {rng.next() >> 3U};
    held.apply(Store{.tier = Tier::Gpu, .parent = {}, .keys = run});
  }
  ASSERT_EQ(held.size(), kBlocks);
  RecordProperty("bytes_per_block_x100", static_cast<int>(held.memory_bytes() * 100 / kBlocks));
  EXPECT_LE(held.memory_bytes(), kBlocks * 44);
  EXPECT_GE(held.memory_bytes(), kBlocks * 32);
}

}  // namespace
}  // namespace sightline::publisher
