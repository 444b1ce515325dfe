// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <optional>

#include <gtest/gtest.h>

#include "router/cache/events/normaliser.h"
#include "router/cache/index/exact_index.h"
#include "tests/support/indexed.h"

// Several copies of one block: the meaning of removals under each policy.
namespace sightline::events {
namespace {

constexpr CacheId kEngine{6};

BlockStored stored(std::int64_t group = 0, std::uint64_t hash = 1) {
  BlockStored event;
  event.hashes = {{.low = hash, .high = 1}};
  event.tokens = {10, 11, 12, 13};
  event.block_size = 4;
  event.offsets_stated = true;
  event.kind = SpecKind::Full;
  event.group = group;
  return event;
}

BlockRemoved removed(std::optional<std::uint32_t> left = std::nullopt,
                     std::optional<std::int64_t> group = 0) {
  BlockRemoved event;
  event.hashes = {{.low = 1, .high = 1}};
  event.group = group;
  if (left) event.copies_left = {*left};
  return event;
}

class Copies : public testing::Test {
 protected:
  void follow(contract::Copies copies) {
    state.emplace(NormaliserOptions{.id = kEngine, .model = "m", .copies = copies}, scheme, index);
  }
  template <class... Events>
  std::uint64_t blocks_after(Events... events) {
    state->apply({.timestamp_s = 1, .rank = 0, .events = {KvEvent(std::move(events))...}});
    return index.blocks(kEngine);
  }

  keys::Scheme scheme{contract::development_identity_key()};
  index::ExactIndex index;
  std::optional<test::IndexedNormaliser> state;
};

TEST_F(Copies, EachRemovalIsOfOneCopyWhereAllAreAnnounced) {
  follow(contract::Copies::RefCount);
  EXPECT_EQ(blocks_after(stored(), stored(), stored()), 1U);
  EXPECT_EQ(blocks_after(removed(), removed()), 1U);
  EXPECT_EQ(blocks_after(removed()), 0U);
}

TEST_F(Copies, RemovalMeansTheLastCopyUnderThatPolicy) {
  follow(contract::Copies::LastCopy);
  EXPECT_EQ(blocks_after(stored(), stored(), stored()), 1U);
  EXPECT_EQ(blocks_after(removed()), 0U);
  EXPECT_EQ(blocks_after(stored()), 1U);
}

TEST_F(Copies, RemainingCopiesCountUnderAnyPolicy) {
  for (const auto policy : {contract::Copies::RefCount, contract::Copies::LastCopy}) {
    follow(policy);
    EXPECT_EQ(blocks_after(stored(), stored(), stored()), 1U);
    EXPECT_EQ(blocks_after(removed(2)), 1U);
    EXPECT_EQ(blocks_after(removed(1)), 1U);
    EXPECT_EQ(blocks_after(removed(0)), 0U);
    // A copy that was taken for a report, and a report that was taken for a copy.
    EXPECT_EQ(blocks_after(stored(), removed(1)), 1U);
    EXPECT_EQ(blocks_after(stored(), stored(), removed(0)), 0U);
  }
}

TEST_F(Copies, RemainingCopiesOfAnUnknownBlockDoNotCount) {
  follow(contract::Copies::RefCount);
  EXPECT_EQ(blocks_after(stored(0, 2)), 1U);
  EXPECT_EQ(blocks_after(removed(5)), 1U);
  EXPECT_EQ(blocks_after(removed()), 1U);
  EXPECT_EQ(state->statistics().unknown_removal, 2U);
}

TEST_F(Copies, RemainingCopiesOfAnUnnamedGroupDoNotCount) {
  follow(contract::Copies::RefCount);
  EXPECT_EQ(blocks_after(stored(0), stored(1)), 1U);
  EXPECT_EQ(blocks_after(removed(3, std::nullopt)), 0U);
}

}  // namespace
}  // namespace sightline::events
