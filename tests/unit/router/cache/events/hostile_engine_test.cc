// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// A message of an engine costs at most as much memory and time as its bytes justify.
#include <algorithm>
#include <chrono>
#include <optional>
#include <unordered_set>
#include <utility>

#include <gtest/gtest.h>

#include "common/contract/identity_key.h"

#include "router/cache/events/normaliser.h"
#include "router/cache/index/exact_index.h"
#include "router/cache/wire/batch_codec.h"
#include "tests/support/indexed.h"
#include "tests/support/pack.h"
#include "tests/support/thread_time.h"

namespace sightline::events {
namespace {

// An array of this many values of one byte each.
pack::Value many(std::size_t count, char value) {
  return pack::sized(0xdd, static_cast<std::uint32_t>(count)) + std::string(count, value);
}

pack::Value removal(std::size_t blocks) {
  return pack::map({{"type", pack::text("BlockRemoved")}, {"block_hashes", many(blocks, 1)}});
}

pack::Value store(std::size_t blocks, const pack::Value& tokens, const pack::Value& extras) {
  return pack::map({{"type", pack::text("BlockStored")},
                    {"block_hashes", many(blocks, 1)},
                    {"token_ids", tokens},
                    {"block_size", pack::integer(1)},
                    {"extra_keys", extras}});
}

TEST(HostileEngine, TheBlocksOfABatchAreBoundedTogether) {
  constexpr std::size_t kHalf = wire::kBlocksPerBatchMax / 2;
  EXPECT_TRUE(wire::decode_batch(pack::batch({removal(kHalf), removal(kHalf)})).ok());
  const auto refused =
      wire::decode_batch(pack::batch({removal(kHalf), removal(kHalf), removal(1)}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::TooLarge);
  EXPECT_EQ(refused.error().blame, Blame::Worker);
}

TEST(HostileEngine, TheTokensOfABatchAreBoundedTogether) {
  const auto full = store(1, many(wire::kTokensPerEventMax, 1), pack::nil());
  EXPECT_TRUE(wire::decode_batch(pack::batch({full, full})).ok());
  EXPECT_EQ(wire::decode_batch(pack::batch({full, full, full})).error().code, ErrorCode::TooLarge);
}

TEST(HostileEngine, TheExtraKeysOfABatchAreBoundedTogether) {
  constexpr char kEmptyText = '\xa0';
  constexpr std::size_t kBlocks = wire::kExtrasPerBatchMax / wire::kMediaPerBlockMax;
  std::vector<pack::Value> extras(kBlocks, many(wire::kMediaPerBlockMax, kEmptyText));
  const auto tokens = many(kBlocks, 1);
  EXPECT_TRUE(wire::decode_batch(pack::batch({store(kBlocks, tokens, pack::array(extras))})).ok());
  extras[0] = many(1, kEmptyText);
  const auto more = pack::batch(
      {store(kBlocks, tokens, pack::array(extras)), store(kBlocks, tokens, pack::array(extras))});
  EXPECT_EQ(wire::decode_batch(more).error().code, ErrorCode::TooLarge);
}

class CountingIndex : public index::ExactIndex {
 public:
  void apply(CacheId cache, const operations::Operation& operation) override {
    const auto* clear = std::get_if<operations::Clear>(&operation);
    if (clear != nullptr && !clear->held) ++drops;
    ExactIndex::apply(cache, operation);
  }
  int drops = 0;
};

BlockStored blocks_of(std::size_t count) {
  BlockStored event;
  for (std::size_t i = 0; i < count; ++i) event.hashes.push_back({.low = i, .high = 1});
  event.tokens.assign(count, 7);
  event.block_size = 1;
  return event;
}

TEST(HostileEngine, RepeatedClearsDoNotWalkOtherEnginesBlocks) {
  const keys::Scheme scheme(contract::development_identity_key());
  CountingIndex index;
  test::IndexedNormaliser other({.id = CacheId{1}, .model = "m"}, scheme, index);
  test::IndexedNormaliser state({.id = CacheId{2}, .model = "m"}, scheme, index);
  other.apply({.events = {blocks_of(1000)}});
  for (int i = 0; i < 100; ++i) {
    state.apply({.events = {blocks_of(10)}});
    EXPECT_EQ(index.blocks(CacheId{2}), 10U);
    state.apply({.events = {AllBlocksCleared{}, AllBlocksCleared{}}});
    EXPECT_EQ(index.blocks(CacheId{2}), 0U);
  }
  EXPECT_EQ(index.drops, 0);
  EXPECT_EQ(index.blocks(CacheId{1}), 1000U);
  EXPECT_EQ(index.blocks_total(), 1000U);
}

TEST(HostileEngine, ClearingDoesNotHideWhatIsHeldAboutOthers) {
  const keys::Scheme scheme(contract::development_identity_key());
  index::RemovalJournal journal({.chunks_max = 1, .chunks_per_engine_max = 1});
  index::ExactIndex index;
  test::IndexedNormaliser other({.id = CacheId{1}, .model = "m"}, scheme, index, &journal);
  test::IndexedNormaliser state({.id = CacheId{2}, .model = "m"}, scheme, index, &journal);
  other.apply({.events = {blocks_of(1000)}});
  state.apply({.events = {blocks_of(100)}});
  const auto claimed = index.held(CacheId{1}, operations::Tier::Gpu);
  const auto position = journal.position();
  state.apply({.events = std::vector<KvEvent>(1000, AllBlocksCleared{})});
  EXPECT_EQ(journal.withdrawn_since(position, CacheId{1}, claimed), false);
  EXPECT_EQ(journal.withdrawn_since(position, CacheId{2}, claimed), true);
  EXPECT_EQ(index.blocks(CacheId{2}), 0U);
  EXPECT_EQ(index.blocks_total(), 1000U);
}

constexpr std::size_t kManyBlocks = 40'000;
// How much longer the worst events may take than ordinary ones of as many blocks.
constexpr double kRatioMax = 4;

double cpu_seconds() { return std::chrono::duration<double>(test::thread_time()).count(); }

// Least time of three that an engine's state takes for this batch.
double cost_of(const EventBatch& batch) {
  const keys::Scheme scheme(contract::development_identity_key());
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    index::ExactIndex index;
    test::IndexedNormaliser state({.id = CacheId{2}, .model = "m"}, scheme, index);
    const auto begin = cpu_seconds();
    state.apply(batch);
    least = std::min(least, cpu_seconds() - begin);
  }
  return least;
}

// The cost of this many blocks in the last of these groups, all of which count.
double cost_in_groups(std::int64_t groups, const BlockStored& blocks) {
  EventBatch batch;
  for (std::int64_t group = 0; group < groups; ++group) {
    auto event = group + 1 < groups ? blocks_of(1) : blocks;
    event.group = group;
    event.kind = SpecKind::Full;
    batch.events.emplace_back(std::move(event));
  }
  return cost_of(batch);
}

TEST(HostileEngine, BlocksOfManyGroupsCostWhatThoseOfOneCost) {
  auto repeated = blocks_of(10 * kManyBlocks);
  repeated.hashes.assign(repeated.hashes.size(), {.low = 0, .high = 1});
  for (const std::int64_t groups : {8, 16, 64, 200}) {
    for (const auto& blocks : {blocks_of(kManyBlocks), repeated}) {
      EXPECT_LT(cost_in_groups(groups, blocks), kRatioMax * cost_in_groups(1, blocks)) << groups;
    }
  }
}

BlockRemoved removal_of(std::vector<EngineHash> hashes) {
  BlockRemoved event;
  event.hashes = std::move(hashes);
  return event;
}

double ordinary_cost() {
  const auto event = blocks_of(kManyBlocks);
  return cost_of({.events = {event, removal_of(event.hashes)}});
}

TEST(HostileEngine, HashesChosenForOneBucketCostWhatOthersCost) {
  std::unordered_set<std::size_t> table;
  while (table.size() < kManyBlocks) table.insert(table.size());
  // Hashes unchanged, and mixed with the usual constant.
  for (const std::uint64_t mask : {0ULL, 0x9e37'79b9'7f4a'7c15ULL}) {
    auto event = blocks_of(kManyBlocks);
    for (std::size_t i = 0; i < kManyBlocks; ++i) {
      event.hashes[i].low = (i * table.bucket_count()) ^ mask;
    }
    EXPECT_LT(cost_of({.events = {event, removal_of(event.hashes)}}), kRatioMax * ordinary_cost());
  }
}

// Blocks whose parent is never announced.
BlockStored orphans(std::size_t count) {
  auto event = blocks_of(count);
  event.parent = EngineHash{.low = 0, .high = 2};
  return event;
}

TEST(HostileEngine, RepeatedHashInAWaitingEventCostsNoMore) {
  auto event = orphans(kManyBlocks);
  event.hashes.assign(kManyBlocks, {.low = 1, .high = 1});
  const auto removed = removal_of({event.hashes[0]});
  EXPECT_LT(cost_of({.events = {event, removed}}), kRatioMax * ordinary_cost());
}

TEST(HostileEngine, RemovingAWaitingEventBackwardsCostsNoMore) {
  const auto event = orphans(kManyBlocks);
  const auto removed = removal_of({event.hashes.rbegin(), event.hashes.rend()});
  EXPECT_LT(cost_of({.events = {event, removed}}), kRatioMax * ordinary_cost());
}

TEST(HostileEngine, RemovingWaitingBlocksOfAnotherTierCostsNoMore) {
  std::vector<KvEvent> events;
  auto event = orphans(kManyBlocks / 1000);
  event.hashes.assign(event.hashes.size(), {.low = 1, .high = 1});
  event.tier = operations::Tier::Cpu;
  for (int i = 0; i < 1000; ++i) events.emplace_back(event);
  events.emplace_back(removal_of(std::vector<EngineHash>(kManyBlocks, {.low = 1, .high = 1})));
  EXPECT_LT(cost_of({.events = events}), kRatioMax * ordinary_cost());
}

TEST(HostileEngine, WhatAllEnginesHaveRememberedIsBoundedTogether) {
  const keys::Scheme scheme(contract::development_identity_key());
  index::ExactIndex index;
  ByteBudget budget(3 * kHandleBytes);
  const auto engine = [&](std::uint32_t number) {
    return std::make_unique<test::IndexedNormaliser>(
        NormaliserOptions{.id = CacheId{number}, .model = "m", .handle_bytes = &budget}, scheme,
        index);
  };
  auto first = engine(1);
  const auto second = engine(2);
  first->apply({.events = {blocks_of(2)}});
  second->apply({.events = {blocks_of(2)}});
  EXPECT_EQ(first->handles(), 2U);
  EXPECT_EQ(second->handles(), 1U);
  EXPECT_TRUE(second->missing().no_room);
  EXPECT_EQ(index.blocks(CacheId{2}), 1U);
  // Others may use the room that one frees.
  first->reset();
  second->apply({.events = {blocks_of(3)}});
  EXPECT_EQ(second->handles(), 3U);
  second->apply({.events = {AllBlocksCleared{}}});
  EXPECT_EQ(budget.held(), 0U);
  first->apply({.events = {blocks_of(3)}});
  first.reset();
  EXPECT_EQ(budget.held(), 0U);
}

}  // namespace
}  // namespace sightline::events
