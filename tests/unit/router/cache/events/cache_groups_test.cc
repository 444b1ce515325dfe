// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Engines whose cache has several groups. Which group shows that a block is held?
#include <gtest/gtest.h>

#include "router/cache/events/normaliser.h"
#include "router/cache/index/exact_index.h"
#include "tests/support/indexed.h"

namespace sightline::events {
namespace {

using operations::Tier;

constexpr CacheId kEngine{6};

// Blocks of one token with consecutive hashes, by default at the root.
BlockStored stored(std::uint64_t first, std::size_t blocks,
                   std::optional<std::uint64_t> parent = std::nullopt) {
  BlockStored event;
  if (parent) event.parent = EngineHash{.low = *parent, .high = 1};
  for (std::uint64_t i = first; i < first + blocks; ++i) {
    event.hashes.push_back({.low = i, .high = 1});
    event.tokens.push_back(static_cast<std::int64_t>(i));
  }
  event.block_size = 1;
  event.offsets_stated = true;
  return event;
}

BlockRemoved removed(std::uint64_t first, std::size_t blocks = 1) {
  BlockRemoved event;
  for (std::uint64_t i = first; i < first + blocks; ++i) {
    event.hashes.push_back({.low = i, .high = 1});
  }
  return event;
}

BlockStored in_group(BlockStored event, std::int64_t group, SpecKind kind) {
  event.group = group;
  event.kind = kind;
  return event;
}
BlockRemoved in_group(BlockRemoved event, std::int64_t group) {
  event.group = group;
  return event;
}

class CacheGroups : public testing::Test {
 protected:
  template <class... Events>
  void apply(Events... events) {
    state_.apply({.timestamp_s = 1, .rank = 0, .events = {KvEvent(std::move(events))...}});
  }
  [[nodiscard]] std::uint64_t blocks() const { return index_.held(kEngine, Tier::Gpu).size(); }

  keys::Scheme scheme_{contract::development_identity_key()};
  index::ExactIndex index_;
  test::IndexedNormaliser state_{{.id = kEngine, .model = "m"}, scheme_, index_};
};

TEST_F(CacheGroups, OnlyFullAttentionGroupsCount) {
  apply(in_group(stored(1, 2), 0, SpecKind::Other), in_group(stored(1, 2), 1, SpecKind::Full));
  EXPECT_EQ(blocks(), 2U);
  apply(in_group(removed(1, 2), 0));  // the sliding window moves on
  EXPECT_EQ(blocks(), 2U);
  EXPECT_EQ(state_.statistics().ignored_group, 2U);
  apply(in_group(removed(1, 2), 1));
  EXPECT_EQ(blocks(), 0U);
}

TEST_F(CacheGroups, BlockMustBeInAllFullGroups) {
  apply(in_group(stored(1, 2), 0, SpecKind::Full), in_group(stored(1, 2), 1, SpecKind::Mla));
  EXPECT_EQ(blocks(), 2U);
  apply(in_group(removed(2), 1));
  EXPECT_EQ(blocks(), 1U);
  apply(in_group(removed(2), 0));
  apply(in_group(stored(2, 1, 1), 0, SpecKind::Full));
  EXPECT_EQ(blocks(), 1U);
  apply(in_group(stored(2, 1, 1), 1, SpecKind::Mla));
  EXPECT_EQ(blocks(), 2U);
}

TEST_F(CacheGroups, OnlyGroupCountsForAnyKind) {
  apply(in_group(stored(1, 2), 0, SpecKind::Other));
  EXPECT_EQ(blocks(), 2U);
}

TEST_F(CacheGroups, TheOnlyGroupStopsCountingWhenAnotherAppears) {
  apply(in_group(stored(1, 2), 0, SpecKind::Other));
  apply(in_group(stored(5, 1), 1, SpecKind::Full));
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(state_.handles(), 1U);
}

// The new group does not have the earlier blocks. They must not remain when it removes them.
TEST_F(CacheGroups, LaterCountingGroupDropsBlocksOutsideOfIt) {
  for (const auto kind : {SpecKind::Full, SpecKind::Mla, SpecKind::Unstated}) {
    state_.reset();
    apply(in_group(stored(1, 2), 0, SpecKind::Full));
    apply(in_group(stored(5, 1), 1, kind));
    EXPECT_EQ(blocks(), 0U);
    apply(in_group(removed(1, 2), 0));
    EXPECT_EQ(blocks(), 0U);
    EXPECT_EQ(state_.handles(), 1U);
  }
}

TEST_F(CacheGroups, LaterIgnoredGroupDropsNoBlocks) {
  apply(in_group(stored(1, 2), 0, SpecKind::Full));
  apply(in_group(stored(5, 1), 1, SpecKind::Other));
  EXPECT_EQ(blocks(), 2U);
  apply(in_group(removed(1, 2), 0));
  EXPECT_EQ(blocks(), 0U);
}

TEST_F(CacheGroups, ResetDropsAllGroupsThatAppearedOneByOne) {
  std::vector<keys::BlockKey> others;
  for (std::uint64_t key = 1; key <= 100; ++key) others.push_back({key});
  index_.store({7}, Tier::Gpu, others);
  apply(in_group(stored(1, 2), 0, SpecKind::Full));
  apply(in_group(stored(5, 1), 1, SpecKind::Full));
  apply(in_group(removed(1, 2), 0));
  state_.reset();
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(index_.blocks({7}), 100U);
}

// An event about known blocks, without their content.
BlockStored placeholder(std::uint64_t first, std::size_t blocks, Tier tier = Tier::Cpu) {
  auto event = stored(first, blocks);
  event.tokens.clear();
  event.block_size = 0;
  event.tier = tier;
  return event;
}

TEST_F(CacheGroups, EventsThatAreIgnoredTeachNoGroup) {
  apply(in_group(stored(1, 2), 0, SpecKind::Full));
  auto remote = in_group(stored(8, 1), 1, SpecKind::Unstated);
  remote.remote = true;
  auto elsewhere = in_group(stored(8, 1), 2, SpecKind::Full);
  elsewhere.tier.reset();
  apply(remote, elsewhere, in_group(placeholder(9, 1), 3, SpecKind::Full));
  EXPECT_EQ(blocks(), 2U);
  apply(in_group(stored(3, 1, 2), 0, SpecKind::Full));
  EXPECT_EQ(blocks(), 3U);
}

TEST_F(CacheGroups, WhatIsOffloadedBeforeTheGroupsAreKnownFixesNone) {
  auto content = stored(8, 1);
  content.tier = Tier::Storage;
  auto unstated = in_group(content, 0, SpecKind::Unstated);
  apply(placeholder(9, 1), content, unstated);
  apply(in_group(stored(1, 4), 0, SpecKind::Other), in_group(stored(1, 4), 1, SpecKind::Full));
  EXPECT_EQ(blocks(), 4U);
  apply(in_group(removed(1), 0));
  EXPECT_EQ(blocks(), 4U);
  EXPECT_EQ(state_.statistics().unknown_placeholder, 1U);
}

// In a model with recurrent layers, the state of these layers is offloaded under the same hashes.
TEST_F(CacheGroups, PlaceholderOfAPossibleOtherGroupDoesNotCount) {
  apply(in_group(stored(1, 4), 0, SpecKind::Other), in_group(stored(1, 4), 1, SpecKind::Full));
  auto content = stored(1, 1);
  content.tier = Tier::Cpu;
  apply(placeholder(1, 2), content);
  EXPECT_TRUE(index_.held(kEngine, Tier::Cpu).empty());
  EXPECT_EQ(state_.statistics().unknown_placeholder, 2U);
  EXPECT_EQ(state_.statistics().unknown_content, 1U);
  EXPECT_TRUE(state_.missing().unknown_content);
  apply(in_group(placeholder(1, 2), 1, SpecKind::Unstated));
  EXPECT_EQ(index_.held(kEngine, Tier::Cpu).size(), 2U);
}

TEST_F(CacheGroups, RemovalWithoutAGroupAppliesToEachCountingGroup) {
  for (const std::int64_t first : {0, 3}) {
    state_.reset();
    apply(in_group(stored(1, 2), first, SpecKind::Full),
          in_group(stored(1, 2), first + 1, SpecKind::Mla));
    EXPECT_EQ(blocks(), 2U);
    apply(removed(2));
    EXPECT_EQ(blocks(), 1U);
    EXPECT_EQ(state_.handles(), 1U);
  }
}

TEST_F(CacheGroups, EngineWithTooManyCountingGroupsHasNoClaims) {
  for (std::int64_t group = 0; group < std::int64_t{kCountingGroupsMax}; ++group) {
    apply(in_group(stored(1, 2), group, SpecKind::Full));
  }
  apply(in_group(stored(1, 2), 0, SpecKind::Full));
  EXPECT_EQ(state_.statistics().groups_refused, 0U);
  apply(in_group(stored(5, 2), kCountingGroupsMax, SpecKind::Full));
  EXPECT_EQ(state_.statistics().groups_refused, 1U);
  for (std::int64_t group = 0; group <= std::int64_t{kCountingGroupsMax}; ++group) {
    apply(in_group(stored(1, 2), group, SpecKind::Full));
  }
  EXPECT_EQ(blocks(), 0U);
  EXPECT_EQ(state_.handles(), 0U);
  state_.reset();
  apply(in_group(stored(1, 2), 0, SpecKind::Full));
  EXPECT_EQ(blocks(), 2U);
}

TEST_F(CacheGroups, GroupsThatDoNotCountAreRefusedWithoutHarm) {
  apply(in_group(stored(1, 2), 0, SpecKind::Full));
  for (std::int64_t group = 1; group <= std::int64_t{kGroupsMax}; ++group) {
    apply(in_group(stored(1, 2), group, SpecKind::Other));
  }
  EXPECT_EQ(state_.statistics().groups_refused, 1U);
  EXPECT_EQ(blocks(), 2U);
}

TEST_F(CacheGroups, ClaimsAreAnUpperBoundWhereAGroupDoesNotCount) {
  apply(in_group(stored(1, 2), 1, SpecKind::Full));
  EXPECT_FALSE(state_.has_uncounted_groups());
  apply(in_group(stored(1, 2), 0, SpecKind::Other));
  EXPECT_TRUE(state_.has_uncounted_groups());
  state_.reset();
  apply(in_group(stored(1, 2), 0, SpecKind::Other));
  EXPECT_FALSE(state_.has_uncounted_groups());
}

TEST_F(CacheGroups, EventsWithoutAGroupBelongToTheOneThatCounts) {
  auto event = in_group(stored(1, 2), 0, SpecKind::Other);
  apply(event, in_group(stored(1, 2), 3, SpecKind::Full));
  apply(removed(2));
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(CacheGroups, UnequalGroupsMakeClaimsAnUpperBound) {
  EXPECT_FALSE(state_.is_upper_bound());
  apply(in_group(stored(1, 2), 0, SpecKind::Full));
  EXPECT_FALSE(state_.is_upper_bound());
  apply(in_group(stored(1, 2), 1, SpecKind::Mla));
  EXPECT_FALSE(state_.is_upper_bound()) << "both count";
  apply(in_group(stored(1, 2), 2, SpecKind::Other));
  EXPECT_TRUE(state_.is_upper_bound());
  state_.reset();
  EXPECT_FALSE(state_.is_upper_bound());
  apply(in_group(stored(1, 2), 0, SpecKind::Other));
  EXPECT_TRUE(state_.is_upper_bound()) << "the only group, of a sliding window";
}

}  // namespace
}  // namespace sightline::events
