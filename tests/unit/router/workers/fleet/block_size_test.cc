// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/block_size.h"

#include <gtest/gtest.h>

namespace sightline::fleet {
namespace {

using LoadSource = BlockSizeSource;
using With = BlockSizeConflict::With;
using Ranks = std::vector<AnnouncedBlockSize>;

BlockSize told_by_server(std::uint32_t tokens) {
  BlockSize size;
  size.take_from_server(tokens);
  return size;
}

// For a worker with one rank.
BlockSize with_events(BlockSize size, const AnnouncedBlockSize& told) {
  size.take_from_events(told.tokens, Ranks{told});
  return size;
}

TEST(BlockSize, IsUnknownWithoutASource) {
  BlockSize size;
  EXPECT_EQ(size.source(), LoadSource::Nobody);
  EXPECT_EQ(size.tokens(), 0U);
  size.take_from_server(0);
  EXPECT_EQ(size, BlockSize());
}

TEST(BlockSize, ServersValueCountsUntilOthersTeachAnother) {
  BlockSize size = told_by_server(16);
  EXPECT_EQ(size.source(), LoadSource::Server);
  EXPECT_EQ(size.tokens(), 16U);
  size.take_from_others(32);
  EXPECT_EQ(size.source(), LoadSource::Others);
  EXPECT_EQ(size.tokens(), 32U);
  EXPECT_EQ(size.configured(), 16U);
  size.take_from_server(0);
  EXPECT_EQ(size.tokens(), 32U) << "no news";
  size.take_from_server(16);
  EXPECT_EQ(size.tokens(), 16U) << "the others are to be asked again";
}

TEST(BlockSize, OthersWhoSayWhatTheServerSaysAddNothing) {
  BlockSize size = told_by_server(16);
  size.take_from_others(16);
  EXPECT_EQ(size, told_by_server(16));
}

TEST(BlockSize, TheOperatorKnowsBetterThanTheServer) {
  BlockSize size(32);
  size.take_from_server(16);
  EXPECT_EQ(size.source(), LoadSource::Operator);
  EXPECT_EQ(size.tokens(), 32U);
  EXPECT_EQ(size.configured(), 32U);
  EXPECT_EQ(size.by_operator(), 32U);
}

TEST(BlockSize, EventsWinOverLaterSources) {
  BlockSize size = told_by_server(16);
  size.take_from_others(64);
  size = with_events(size, {.tokens = 32});
  EXPECT_EQ(size.source(), LoadSource::Events);
  EXPECT_EQ(size.tokens(), 32U);
  EXPECT_EQ(size.configured(), 16U);
  EXPECT_EQ(size.conflict(), std::nullopt) << "a server that tells another size is no liar";
  size.take_from_server(8);
  EXPECT_EQ(size.tokens(), 32U);
  EXPECT_EQ(size.configured(), 8U);
  size.forget_events();
  EXPECT_EQ(size, told_by_server(8));
}

TEST(BlockSize, EventsOfAnotherSizeThanTheConfiguredOneAreNews) {
  EXPECT_FALSE(BlockSize().is_contradicted_by({.tokens = 16}));
  EXPECT_FALSE(told_by_server(16).is_contradicted_by({.tokens = 16}));
  EXPECT_TRUE(told_by_server(16).is_contradicted_by({.tokens = 32}));
  EXPECT_TRUE(BlockSize(16).is_contradicted_by({.tokens = 32}));
  EXPECT_TRUE(BlockSize().is_contradicted_by({.tokens = 16, .has_several = true}));
}

TEST(BlockSize, EventsConflictWithTheOperatorUntilForgotten) {
  BlockSize size = with_events(BlockSize(16), {.tokens = 32, .has_several = true});
  ASSERT_TRUE(size.conflict());
  EXPECT_EQ(*size.conflict(), (BlockSizeConflict{With::Operator, 32, 16}));
  EXPECT_EQ(size.tokens(), 32U);
  EXPECT_EQ(reason_of(*size.conflict()),
            "its KV events have blocks of 32 tokens, but this worker has block_size=16: correct or "
            "remove block_size");
  size.forget_events();
  EXPECT_EQ(size, BlockSize(16));
}

TEST(BlockSize, EventsThatContradictEarlierOnesAreAConflictUntilTheyAgree) {
  BlockSize size = with_events({}, {.tokens = 8, .has_several = true});
  ASSERT_TRUE(size.conflict());
  EXPECT_EQ(reason_of(*size.conflict()),
            "its KV events have blocks of 8 tokens, earlier events had another size: restart the "
            "engine with one block size");
  EXPECT_EQ(with_events(size, {.tokens = 8}).conflict(), std::nullopt);
}

TEST(BlockSize, DifferentSizesOfRanksConflict) {
  BlockSize size;
  size.take_from_events(16, Ranks{{16}, {}, {}});
  EXPECT_EQ(size.conflict(), std::nullopt) << "the others have not told yet";
  size.take_from_events(32, Ranks{{16}, {}, {32}});
  ASSERT_TRUE(size.conflict());
  EXPECT_EQ(*size.conflict(), (BlockSizeConflict{With::OtherRank, 32, 16}));
  EXPECT_EQ(reason_of(*size.conflict()),
            "its KV events have blocks of 32 tokens, those of another data-parallel rank have 16: "
            "start all ranks with the same --block-size");
  size.take_from_events(32, Ranks{{32}, {}, {32}});
  EXPECT_EQ(size.conflict(), std::nullopt);
}

TEST(BlockSizes, GuessingWorkerLearnsFromAnEquallyConfiguredOne) {
  BlockSize guessing = told_by_server(16);
  BlockSize other = told_by_server(8);
  BlockSize unknown;
  BlockSize first = with_events(told_by_server(16), {.tokens = 32});
  BlockSize second = with_events(told_by_server(16), {.tokens = 64});
  BlockSize by_operator(8);
  guess_block_sizes(std::vector{&guessing, &other, &unknown, &first, &second, &by_operator}, 0);
  EXPECT_EQ(guessing.tokens(), 32U);
  EXPECT_EQ(other.tokens(), 8U);
  EXPECT_EQ(unknown.tokens(), 0U);
  EXPECT_EQ(first.tokens(), 32U);
  EXPECT_EQ(second.tokens(), 64U);
  EXPECT_EQ(by_operator.tokens(), 8U);
  guess_block_sizes(std::vector{&guessing}, 0);
  EXPECT_EQ(guessing.tokens(), 32U) << "until its server tells again";
}

TEST(BlockSizes, MostWorkersDecideAndTheFirstOfEqualMany) {
  const auto common = [](const std::vector<std::uint32_t>& sizes) {
    return common_block_size(sizes, 0);
  };
  EXPECT_EQ(common({}), 0U);
  EXPECT_EQ(common({0, 0}), 0U);
  EXPECT_EQ(common({16, 32, 32}), 32U);
  EXPECT_EQ(common({16, 32, 32, 16}), 16U);
  EXPECT_EQ(common({0, 0, 0, 8}), 8U);
}

TEST(BlockSizes, OfEquallyManyTheOneInForceStays) {
  const std::vector<std::uint32_t> sizes = {8, 16, 16, 8, 32};
  EXPECT_EQ(common_block_size(sizes, 16), 16U);
  EXPECT_EQ(common_block_size(sizes, 8), 8U);
  EXPECT_EQ(common_block_size(sizes, 32), 8U) << "which is not of the most";
}

TEST(BlockSizes, MajorityChangesTheSizeInForce) {
  const auto in_force = [](std::uint32_t now, const std::vector<std::uint32_t>& known) {
    std::vector<BlockSize> workers;
    for (const std::uint32_t tokens : known) {
      workers.push_back(tokens == 0 ? told_by_server(16)
                                    : with_events(told_by_server(16), {.tokens = tokens}));
    }
    std::vector<const BlockSize*> all;
    for (const BlockSize& worker : workers) all.push_back(&worker);
    return block_size_in_force(all, now);
  };
  EXPECT_EQ(in_force(0, {0, 0}), 0U) << "what servers tell is a guess";
  EXPECT_EQ(in_force(0, {0, 64, 0}), 64U);
  EXPECT_EQ(in_force(16, {8, 0, 0, 0}), 16U);
  EXPECT_EQ(in_force(16, {8, 8, 16, 16}), 16U);
  EXPECT_EQ(in_force(16, {8, 8, 8, 16}), 8U);
  EXPECT_EQ(in_force(16, {8}), 8U);
  EXPECT_EQ(in_force(16, {}), 16U) << "while all restart";
}

TEST(BlockSizes, SingleDeviatingWorkerTeachesNoOther) {
  const auto guesses = [](std::uint32_t in_force, const std::vector<std::uint32_t>& known) {
    BlockSize guessing = told_by_server(16);
    std::vector<BlockSize> workers;
    for (const std::uint32_t tokens : known) {
      workers.push_back(with_events(told_by_server(16), {.tokens = tokens}));
    }
    std::vector<BlockSize*> all = {&guessing};
    for (BlockSize& worker : workers) all.push_back(&worker);
    guess_block_sizes(all, in_force);
    return guessing.tokens();
  };
  EXPECT_EQ(guesses(16, {8}), 16U);
  EXPECT_EQ(guesses(16, {8, 16}), 16U);
  EXPECT_EQ(guesses(16, {8, 16, 16}), 16U);
  EXPECT_EQ(guesses(16, {8, 8}), 8U) << "two of three have it";
  EXPECT_EQ(guesses(64, {64}), 64U) << "after a restart";
  EXPECT_EQ(guesses(64, {8, 64}), 64U);
  EXPECT_EQ(guesses(0, {64}), 64U) << "nothing else was known";
}

TEST(BlockSizes, AWorkerUnlikeMostSaysSo) {
  EXPECT_EQ(reason_unlike_most(BlockSize(16), 0), "");
  EXPECT_EQ(reason_unlike_most(BlockSize(16), 16), "");
  EXPECT_EQ(reason_unlike_most(BlockSize(16), 32),
            "its blocks have 16 tokens, those of most workers have 32: start all engines with the "
            "same --block-size");
}

}  // namespace
}  // namespace sightline::fleet
