// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/events/event_feed.h"

#include <limits>

#include <gtest/gtest.h>

#include "router/cache/index/exact_index.h"
#include "router/cache/wire/batch_codec.h"
#include "tests/support/indexed.h"
#include "tests/support/pack.h"

namespace sightline::events {
namespace {

constexpr CacheId kEngine{2};

class Feed : public testing::Test {
 protected:
  static NormaliserOptions options() { return {.id = kEngine, .model = "m"}; }

  std::optional<std::uint64_t> live(std::uint64_t sequence, const Bytes& payload,
                                    WallTime now = WallTime{}) {
    const auto number = replay_start(sequence);
    const Bytes topic = {'t'};
    return feed_.live(std::vector<ByteView>{topic, number, payload}, now);
  }
  static Bytes store(std::uint64_t hash, double timestamp_s = 1) {
    return pack::batch({pack::stored({hash}, pack::nil(), {hash})}, timestamp_s);
  }

  keys::Scheme scheme_{contract::development_identity_key()};
  index::ExactIndex index_;
  test::IndexedFeed feed_{options(), StreamOptions{}, scheme_, index_};
};

TEST_F(Feed, AppliesMessagesToTheIndexAndReportsItsPosition) {
  EXPECT_FALSE(feed_.status().facts.sequence.has_value());
  live(0, store(1, 100.5), WallTime(std::chrono::milliseconds(101'750)));
  const auto status = feed_.status();
  EXPECT_EQ(index_.blocks(kEngine), 1U);
  EXPECT_EQ(status.cache, kEngine);
  EXPECT_EQ(status.facts.sequence, 0U);
  EXPECT_EQ(status.batch_timestamp_s, 100.5);
  EXPECT_EQ(status.lag, std::chrono::milliseconds(1250));
  EXPECT_EQ(status.facts.block_size, 1U);
  EXPECT_EQ(status.normaliser.blocks_stored, 1U);
  EXPECT_EQ(status.stream.applied, 1U);
}

TEST_F(Feed, LagIsNeverNegativeNorNonsense) {
  const auto now = WallTime(std::chrono::seconds(100));
  std::uint64_t sequence = 0;
  for (const double timestamp_s :
       {100.5, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    live(sequence++, store(1, timestamp_s), now);
    EXPECT_EQ(feed_.status().lag.count(), 0) << timestamp_s;
  }
  live(sequence++, store(1, -1e300), now);
  EXPECT_GT(feed_.status().lag.count(), 0);
}

TEST_F(Feed, AppliesOnlyMessagesOfTheKnownRank) {
  auto of_rank_1 = options();
  of_rank_1.rank = 1;
  test::IndexedFeed feed(of_rank_1, StreamOptions{}, scheme_, index_);
  const auto take = [&](std::uint64_t sequence, const pack::Value& rank) {
    const auto number = replay_start(sequence);
    const Bytes topic = {'t'};
    const auto event = pack::stored({sequence + 1}, pack::nil(), {sequence + 1});
    const auto batch = pack::array({pack::number(1), pack::array({event}), rank});
    const Bytes payload(batch.begin(), batch.end());
    feed.live(std::vector<ByteView>{topic, number, payload}, WallTime{});
    return index_.blocks(kEngine);
  };
  EXPECT_EQ(take(0, pack::integer(1)), 1U);
  EXPECT_EQ(take(1, pack::nil()), 2U) << "an old engine states none";
  EXPECT_EQ(take(2, pack::integer(0)), 0U) << "the earlier ones were perhaps another's too";
  EXPECT_TRUE(feed.status().is_other_rank);
  EXPECT_EQ(take(3, pack::integer(1)), 1U);
  EXPECT_FALSE(feed.status().is_other_rank);
  EXPECT_EQ(feed.status().other_rank_messages, 1U);
}

TEST_F(Feed, CompleteFeedForgetsNoBlocks) {
  EXPECT_TRUE(feed_.status().facts.missing.forgotten) << "nothing was heard yet";
  live(0, store(1));
  EXPECT_FALSE(feed_.status().facts.missing.forgotten);
  live(2, store(2));
  EXPECT_TRUE(feed_.status().facts.missing.forgotten) << "what message 1 announced is not known";
  live(0, store(3));
  EXPECT_FALSE(feed_.status().facts.missing.forgotten) << "it has started anew";
  live(1, Bytes{0xc1});
  EXPECT_TRUE(feed_.status().facts.missing.forgotten) << "what was in there is not known";
  live(2, pack::batch({pack::cleared()}, 1));
  EXPECT_FALSE(feed_.status().facts.missing.forgotten) << "its cache is empty";
  live(3, pack::batch({pack::stored({5}, pack::integer(4), {5})}, 1));
  EXPECT_FALSE(feed_.status().facts.missing.forgotten) << "its parent may come yet";
  feed_.relearn(false, WallTime{});
  EXPECT_TRUE(feed_.status().facts.missing.forgotten);
}

TEST_F(Feed, ALateJoinHasForgottenWhatCameBefore) {
  live(7, store(1));
  EXPECT_TRUE(feed_.status().facts.missing.forgotten);
}

TEST_F(Feed, UnnamedBlocksAreMissingUntilAClear) {
  live(0, pack::batch({pack::stored({1}, pack::nil(), {1, 2})}, 1));
  EXPECT_TRUE(feed_.status().facts.missing.unknown_content);
  EXPECT_FALSE(feed_.status().facts.missing.forgotten);
  live(1, pack::batch({pack::cleared()}, 1));
  EXPECT_FALSE(feed_.status().facts.missing.unknown_content);
}

TEST_F(Feed, WhatFindsNoRoomIsLacked) {
  auto small = options();
  small.handles_max = 1;
  test::IndexedNormaliser state(small, scheme_, index_);
  const auto take = [&](std::uint64_t hash) {
    const auto batch = wire::decode_batch(store(hash));
    ASSERT_TRUE(batch);
    state.apply(*batch);
  };
  take(1);
  EXPECT_FALSE(state.missing().no_room);
  take(2);
  EXPECT_TRUE(state.missing().no_room);
}

TEST_F(Feed, AGapDropsTheEngineFromTheIndex) {
  live(0, store(1));
  live(2, store(2));
  EXPECT_EQ(index_.blocks(kEngine), 1U);
  EXPECT_EQ(feed_.status().stream.drops, 1U);
}

TEST_F(Feed, AnUndecodablePayloadDropsTheEngineFromTheIndex) {
  live(0, store(1));
  live(1, {0xc1});
  EXPECT_EQ(index_.blocks(kEngine), 0U);
  EXPECT_EQ(feed_.status().undecodable_messages, 1U);
  live(2, store(3));
  EXPECT_EQ(index_.blocks(kEngine), 1U);
}

TEST_F(Feed, BrokenFramesAreCountedAndCostNothing) {
  live(0, store(1));
  const Bytes topic = {'t'};
  EXPECT_FALSE(feed_.live(std::vector<ByteView>{topic}, {}).has_value());
  EXPECT_FALSE(feed_.replayed(std::vector<ByteView>{topic}, {}).has_value());
  EXPECT_EQ(feed_.status().undecodable_messages, 2U);
  EXPECT_EQ(index_.blocks(kEngine), 1U);
}

TEST_F(Feed, AReplayFillsTheIndexFromTheBeginning) {
  test::IndexedFeed feed(options(), {.replay_available = true}, scheme_, index_);
  EXPECT_EQ(feed.start(), 0U);
  EXPECT_TRUE(feed.replaying());
  const Bytes none;
  const Bytes end(8, 0xff);
  const auto number = replay_start(0);
  const auto payload = store(1);
  EXPECT_FALSE(feed.replayed(std::vector<ByteView>{none, number, payload}, {}).has_value());
  EXPECT_EQ(feed.replayed(std::vector<ByteView>{none, end, none}, {}), 0U) << "is there more?";
  EXPECT_FALSE(feed.replayed(std::vector<ByteView>{none, number, payload}, {}).has_value());
  EXPECT_FALSE(feed.replayed(std::vector<ByteView>{none, end, none}, {}).has_value());
  EXPECT_FALSE(feed.status().replaying);
  EXPECT_EQ(index_.blocks(kEngine), 1U);
}

TEST_F(Feed, AReplayThatTimesOutLetsLiveMessagesThrough) {
  test::IndexedFeed feed(options(), {.replay_available = true}, scheme_, index_);
  feed.start();
  const Bytes topic = {'t'};
  const auto number = replay_start(0);
  const auto payload = store(1);
  feed.live(std::vector<ByteView>{topic, number, payload}, {});
  EXPECT_EQ(index_.blocks(kEngine), 0U);
  EXPECT_FALSE(feed.replay_timed_out({}).has_value());
  EXPECT_EQ(index_.blocks(kEngine), 1U);
}

TEST_F(Feed, ACacheOfSeveralKindsIsReported) {
  const auto stored_in = [](std::uint64_t group, const char* kind) {
    return pack::map({{"type", pack::text("BlockStored")},
                      {"block_hashes", pack::integers({1})},
                      {"token_ids", pack::integers({1})},
                      {"block_size", pack::integer(1)},
                      {"group_idx", pack::integer(group)},
                      {"kv_cache_spec_kind", pack::text(kind)}});
  };
  const Bytes topic = {'t'};
  for (std::uint64_t group : {0, 1}) {
    const auto number = replay_start(group);
    const auto payload = pack::batch({stored_in(group, group == 0 ? "full_attention" : "mamba")});
    feed_.live(std::vector<ByteView>{topic, number, payload}, {});
    EXPECT_EQ(feed_.status().hybrid_cache, group == 1);
  }
  EXPECT_EQ(index_.blocks(kEngine), 1U);
}

TEST_F(Feed, ABlockSizeConflictIsReported) {
  test::IndexedFeed feed({.id = kEngine, .model = "m", .block_size_configured = 16},
                         StreamOptions{}, scheme_, index_);
  const Bytes topic = {'t'};
  const auto number = replay_start(0);
  const auto payload = store(1);
  feed.live(std::vector<ByteView>{topic, number, payload}, {});
  EXPECT_EQ(feed.status().facts.block_size, 1U);
  EXPECT_EQ(feed.status().facts.block_size_conflict, 1U);
  EXPECT_EQ(index_.blocks(kEngine), 0U);
}

}  // namespace
}  // namespace sightline::events
