// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/index/removal_journal.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/rng.h"

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

// What a writer will have written, known beforehand; in large portions, each of one engine.
struct Portion {
  EngineId engine;
  std::vector<BlockKey> blocks;  // none: all of them
};

constexpr std::uint64_t kBlocksThereAre = 20'000;

std::vector<Portion> portions_to_come(std::size_t count) {
  Rng rng(7);
  std::vector<Portion> portions(count);
  for (Portion& portion : portions) {
    portion.engine = {rng.below(3)};
    portion.blocks.resize(rng.below(20) == 0 ? 0 : 1 + rng.below(1'000));
    for (BlockKey& block : portion.blocks) block = {rng.next() % kBlocksThereAre};
  }
  return portions;
}

struct Removal {
  EngineId engine;
  std::optional<BlockKey> block;
};

// The definition: the first removal from the position on that withdraws one of the blocks.
std::uint64_t first_withdrawal(const std::vector<Removal>& removals, std::uint64_t position,
                               EngineId engine, const std::vector<BlockKey>& blocks) {
  for (; position < removals.size(); ++position) {
    const Removal& removal = removals[position];
    if (removal.engine != engine) continue;
    if (!removal.block || std::find(blocks.begin(), blocks.end(), *removal.block) != blocks.end()) {
      break;
    }
  }
  return position;
}

TEST(RemovalJournal, AnswersLikeANaiveOneWhileRemovalsAreWritten) {
  constexpr std::size_t kRing = 20'000;
  const auto portions = portions_to_come(4'000);
  std::vector<Removal> removals;
  for (const Portion& portion : portions) {
    for (const BlockKey block : portion.blocks) removals.push_back({portion.engine, block});
    if (portion.blocks.empty()) removals.push_back({portion.engine, std::nullopt});
  }
  RemovalJournal journal(kRing);
  std::atomic<std::uint64_t> wanted = 0;  // the writer goes on up to here
  std::jthread writer([&] {
    for (const Portion& portion : portions) {
      while (journal.position() >= wanted) std::this_thread::yield();
      if (portion.blocks.empty()) journal.dropped(portion.engine);
      if (!portion.blocks.empty()) journal.removed(portion.engine, portion.blocks);
    }
  });
  Rng rng(8);
  std::array<std::size_t, 4> answers{};  // false, true, unknown, overtaken while it was asked
  while (journal.position() < removals.size() && !testing::Test::HasFailure()) {
    const EngineId engine{rng.below(3)};
    std::vector<BlockKey> blocks(rng.below(4));
    for (BlockKey& block : blocks) block = {rng.next() % kBlocksThereAre};
    wanted = journal.position() + kRing;
    const std::uint64_t begin = journal.position();
    const std::uint64_t from = begin - std::min<std::uint64_t>(begin, rng.below(kRing + 500));
    const auto answer = journal.withdrawn_since(from, engine, blocks);
    const std::uint64_t end = journal.position();
    const std::uint64_t withdrawal = first_withdrawal(removals, from, engine, blocks);
    ++answers[answer ? *answer : begin - from > kRing ? 2 : 3];
    EXPECT_TRUE(answer.has_value() || end - from > kRing) << from << " to " << end;
    EXPECT_TRUE(!answer.has_value() || begin - from <= kRing) << from << " to " << begin;
    EXPECT_TRUE(answer != true || withdrawal < end);
    EXPECT_TRUE(answer != false || withdrawal >= begin);
  }
  wanted = removals.size();
  for (const std::size_t count : answers) EXPECT_GT(count, 0U);
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
