// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/index/removal_journal.h"

#include <algorithm>
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

// What a writer will have written, known beforehand: of few blocks and engines, so that answers
// of both kinds are frequent.
struct Written {
  EngineId engine;
  std::optional<BlockKey> block;  // nothing: all of them
};

std::vector<Written> removals_to_come(std::size_t count) {
  Rng rng(7);
  std::vector<Written> removals;
  for (std::size_t i = 0; i < count; ++i) {
    Written removal{.engine = {static_cast<std::uint32_t>(rng.next() % 3)}, .block = {}};
    if (rng.next() % 1000 != 0) removal.block = BlockKey{rng.next() % 20'000};
    removals.push_back(removal);
  }
  return removals;
}

void write(RemovalJournal& journal, const Written& removal) {
  if (removal.block) {
    journal.removed(removal.engine, std::vector{*removal.block});
  } else {
    journal.dropped(removal.engine);
  }
}

// The definition: the first removal from the position on that withdraws one of the blocks.
std::uint64_t first_withdrawal(const std::vector<Written>& removals, std::uint64_t position,
                               EngineId engine, const std::vector<BlockKey>& blocks) {
  for (; position < removals.size(); ++position) {
    const Written& removal = removals[position];
    if (removal.engine != engine) continue;
    if (!removal.block || std::find(blocks.begin(), blocks.end(), *removal.block) != blocks.end()) {
      break;
    }
  }
  return position;
}

TEST(RemovalJournal, AnswersLikeANaiveOneWhileRemovalsAreWritten) {
  constexpr std::size_t kRing = 20'000;
  const auto removals = removals_to_come(300'000);
  RemovalJournal journal(kRing);
  std::jthread writer([&](const std::stop_token& stop) {
    for (const Written& removal : removals) {
      if (!stop.stop_requested()) write(journal, removal);
    }
  });
  Rng rng(8);
  std::array<std::size_t, 3> answers{};  // false, true, unknown
  const auto ask = [&] {
    const std::uint64_t begin = journal.position();
    const std::uint64_t from = begin - std::min<std::uint64_t>(begin, rng.next() % (kRing + 500));
    const EngineId engine{static_cast<std::uint32_t>(rng.next() % 3)};
    std::vector<BlockKey> blocks(rng.next() % 8);
    for (BlockKey& block : blocks) block = {rng.next() % 20'000};
    const std::uint64_t withdrawal = first_withdrawal(removals, from, engine, blocks);
    const auto answer = journal.withdrawn_since(from, engine, blocks);
    const std::uint64_t end = journal.position();
    ++answers[answer ? *answer : 2];
    EXPECT_TRUE(answer.has_value() || end - from > kRing) << from << " to " << end;
    EXPECT_TRUE(!answer.has_value() || begin - from <= kRing) << from << " to " << begin;
    EXPECT_TRUE(answer != true || withdrawal < end);
    EXPECT_TRUE(answer != false || withdrawal >= begin);
  };
  while (journal.position() < removals.size() && !testing::Test::HasFailure()) ask();
  for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) ask();
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
