// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/events/waiting_stores.h"

#include <gtest/gtest.h>

#include "router/cache/events/normaliser.h"
#include "router/cache/index/exact_index.h"
#include "tests/support/indexed.h"

namespace sightline::events {
namespace {

constexpr CacheId kEngine{6};

EngineHash hash(std::uint64_t value) { return {.low = value, .high = 1}; }

// Blocks of one token under consecutive hashes.
BlockStored stored(std::uint64_t first, std::size_t blocks, std::uint64_t parent) {
  BlockStored event;
  if (parent > 0) event.parent = hash(parent);
  for (std::uint64_t i = first; i < first + blocks; ++i) {
    event.hashes.push_back(hash(i));
    event.tokens.push_back(static_cast<std::int64_t>(i));
  }
  event.block_size = 1;
  event.offsets_stated = true;
  return event;
}

BlockRemoved removed(std::uint64_t block, operations::Tier tier = operations::Tier::Gpu) {
  BlockRemoved event;
  event.hashes = {hash(block)};
  event.tier = tier;
  return event;
}

TEST(WaitingStores, GivesWhatHangsOnABlockInTheOrderItCame) {
  WaitingStores waiting({});
  EXPECT_EQ(waiting.keep(stored(5, 1, 4)), 0U);
  waiting.keep(stored(9, 2, 8));
  waiting.keep(stored(6, 1, 4));
  EXPECT_EQ(waiting.blocks(), 4U);
  const auto taken = waiting.take(hash(4));
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].hashes[0], hash(5));
  EXPECT_EQ(taken[1].hashes[0], hash(6));
  EXPECT_TRUE(waiting.take(hash(4)).empty());
  EXPECT_EQ(waiting.blocks(), 2U);
}

TEST(WaitingStores, BeyondItsNumberTheOldestFallOut) {
  WaitingStores waiting({.events_max = 2});
  waiting.keep(stored(10, 3, 1));
  waiting.keep(stored(20, 1, 2));
  EXPECT_EQ(waiting.keep(stored(30, 1, 3)), 3U);
  EXPECT_TRUE(waiting.take(hash(1)).empty());
  EXPECT_EQ(waiting.take(hash(2)).size(), 1U);
}

TEST(WaitingStores, BeyondItsBytesTheOldestFallOut) {
  WaitingStores waiting({.bytes_max = 10'000});
  std::size_t fallen = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) fallen += waiting.keep(stored(2 * i + 10, 1, 5));
  EXPECT_GT(waiting.blocks(), 5U) << "the bytes of what has left are free again";
  EXPECT_EQ(fallen, 1000 - waiting.blocks());
  EXPECT_EQ(waiting.take(hash(5)).back().hashes[0], hash(2008));
}

TEST(WaitingStores, TheTextsOfAnEventTakeBytesToo) {
  for (const bool is_salt : {true, false}) {
    WaitingStores waiting({.bytes_max = 10'000});
    auto event = stored(10, 1, 5);
    (is_salt ? event.cache_salt : event.lora_name) = std::string(4000, 'x');
    EXPECT_EQ(waiting.keep(event), 0U);
    EXPECT_EQ(waiting.keep(event), 0U);
    EXPECT_EQ(waiting.keep(event), 1U);
    EXPECT_EQ(waiting.cancel(hash(10), operations::Tier::Gpu), 2U);
    EXPECT_EQ(waiting.keep(event) + waiting.keep(event), 0U);
  }
}

TEST(WaitingStores, OversizedStoreIsDroppedWithoutEvictingOthers) {
  WaitingStores waiting({.bytes_max = 10'000});
  waiting.keep(stored(10, 1, 1));
  EXPECT_EQ(waiting.keep(stored(100, 1000, 2)), 1000U);
  EXPECT_EQ(waiting.take(hash(1)).size(), 1U);
  EXPECT_TRUE(waiting.empty());
}

TEST(WaitingStores, RemovalEndsAllFromARepeatedBlocksFirstPlace) {
  WaitingStores waiting({});
  auto event = stored(10, 5, 1);
  event.hashes[4] = event.hashes[1];
  waiting.keep(event);
  EXPECT_EQ(waiting.blocks(), 5U);
  EXPECT_EQ(waiting.cancel(event.hashes[1], operations::Tier::Gpu), 4U);
  EXPECT_EQ(waiting.blocks(), 1U);
  EXPECT_EQ(waiting.take(hash(1))[0].hashes, std::vector<EngineHash>{hash(10)});
}

TEST(WaitingStores, RemovalEndsTheBlockAndItsSuccessors) {
  WaitingStores waiting({});
  waiting.keep(stored(10, 4, 1));
  EXPECT_EQ(waiting.cancel(hash(12), operations::Tier::Cpu), 0U) << "another tier's copy";
  EXPECT_EQ(waiting.cancel(hash(12), operations::Tier::Gpu), 2U);
  EXPECT_EQ(waiting.cancel(hash(13), operations::Tier::Gpu), 0U);
  const auto taken = waiting.take(hash(1));
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].hashes.size(), 2U);
  EXPECT_EQ(taken[0].tokens.size(), 2U);
  EXPECT_EQ(waiting.blocks(), 0U);
}

TEST(WaitingStores, RemovalOfTheFirstBlockEndsTheEvent) {
  WaitingStores waiting({});
  waiting.keep(stored(10, 2, 1));
  waiting.keep(stored(10, 1, 1));  // another copy: which one is gone is not known
  EXPECT_EQ(waiting.cancel(hash(10), operations::Tier::Gpu), 3U);
  EXPECT_TRUE(waiting.empty());
}

class ChildBeforeParent : public testing::Test {
 protected:
  template <class... Events>
  void apply(Events... events) {
    state_.apply({.timestamp_s = 1, .rank = 0, .events = {KvEvent(std::move(events))...}});
  }
  [[nodiscard]] std::uint32_t leading(const std::vector<TokenId>& tokens) const {
    const auto sequence = keys::block_keys(scheme_, scheme_.root({.model = "m"}),
                                           {.tokens = tokens, .block_size = 1});
    return index_.match(sequence.keys).of(kEngine).gpu_blocks;
  }

  keys::Scheme scheme_{contract::development_identity_key()};
  index::ExactIndex index_;
  test::IndexedNormaliser state_{{.id = kEngine, .model = "m"}, scheme_, index_};
};

TEST_F(ChildBeforeParent, IsTakenWhenTheParentComes) {
  apply(stored(4, 1, 3));
  apply(stored(2, 2, 1));
  EXPECT_EQ(index_.blocks(kEngine), 0U);
  apply(stored(1, 1, 0));
  EXPECT_EQ(leading({1, 2, 3, 4}), 4U);
  EXPECT_EQ(state_.statistics().waited, 3U);
  EXPECT_EQ(state_.statistics().unknown_parent, 0U);
  EXPECT_EQ(state_.waiting(), 0U);
}

TEST_F(ChildBeforeParent, IsNotTakenWhenItWasRemovedMeanwhile) {
  apply(stored(2, 2, 1), removed(3));
  EXPECT_EQ(state_.statistics().unknown_removal, 0U);
  apply(stored(1, 1, 0));
  EXPECT_EQ(leading({1, 2, 3}), 2U);
  EXPECT_EQ(index_.blocks(kEngine), 2U);
}

TEST_F(ChildBeforeParent, IsNotTakenWhenTheCacheWasClearedMeanwhile) {
  apply(stored(2, 2, 1), AllBlocksCleared{}, stored(1, 1, 0));
  EXPECT_EQ(leading({1, 2, 3}), 1U);
}

TEST_F(ChildBeforeParent, IsNotTakenWhenTheEngineWasForgottenMeanwhile) {
  apply(stored(2, 2, 1));
  state_.reset();
  apply(stored(1, 1, 0));
  EXPECT_EQ(leading({1, 2, 3}), 1U);
}

TEST_F(ChildBeforeParent, ThatFoundNoRoomIsCounted) {
  test::IndexedNormaliser state({.id = kEngine, .model = "m", .waiting = {.events_max = 1}},
                                scheme_, index_);
  state.apply({.events = {KvEvent(stored(2, 2, 1)), KvEvent(stored(8, 1, 7))}});
  EXPECT_EQ(state.statistics().unknown_parent, 2U);
  EXPECT_EQ(state.waiting(), 1U);
}

}  // namespace
}  // namespace sightline::events
