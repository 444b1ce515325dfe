// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/index/removal_journal.h"

#include <gtest/gtest.h>

#include "router/index/exact_index.h"

namespace sightline::index {
namespace {

using keys::BlockKey;

constexpr EngineId kA{1};
constexpr EngineId kB{2};
const std::vector<BlockKey> kClaimed{{7}, {3}, {5}};

TEST(RemovalJournal, TellsARemovalOfAClaimedBlockFromEverythingElse) {
  RemovalJournal journal;
  journal.removed(kA, std::vector<BlockKey>{{5}});
  const std::uint64_t position = journal.position();
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), false);
  journal.removed(kB, std::vector<BlockKey>{{5}});       // another engine's
  journal.removed(kA, std::vector<BlockKey>{{4}, {6}});  // blocks nobody claimed
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

TEST(RemovalJournal, SaysThatItDoesNotKnowOnceItHasForgotten) {
  RemovalJournal journal(4);
  const std::uint64_t position = journal.position();
  for (std::uint64_t i = 0; i < 4; ++i) journal.removed(kB, std::vector<BlockKey>{{i}});
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), false);
  journal.removed(kA, std::vector<BlockKey>{{3}});
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), std::nullopt);
  EXPECT_EQ(journal.withdrawn_since(position + 1, kA, kClaimed), true);
}

TEST(RemovalJournal, HearsOfWhatLeavesTheIndex) {
  RemovalJournal journal;
  ExactIndex index(100, journal);
  index.store(kA, Tier::Gpu, kClaimed);
  EXPECT_EQ(journal.position(), 0U);
  index.remove(kA, Tier::Gpu, std::vector<BlockKey>{{3}});
  EXPECT_EQ(journal.withdrawn_since(0, kA, kClaimed), true);
  const std::uint64_t position = journal.position();
  index.drop(kA);
  EXPECT_EQ(journal.withdrawn_since(position, kA, kClaimed), true);
  const std::uint64_t dropped = journal.position();
  index.drop(kA);
  index.drop_known(kA, kClaimed);
  EXPECT_EQ(journal.position(), dropped) << "nothing was held";
  index.store(kA, Tier::Gpu, kClaimed);
  index.drop_known(kA, kClaimed);
  EXPECT_EQ(journal.position(), dropped + 1) << "however many blocks";
}

}  // namespace
}  // namespace sightline::index
