// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/feed.h"

#include <gtest/gtest.h>

namespace sightline::fleet {
namespace {

using operations::CacheFacts;
using operations::FeedHealth;
using Ranks = std::vector<FoundRank>;

FoundRank rank_at(std::uint32_t number, const std::string& events) {
  return {.number = number, .events = EventEndpoints{.events = events}};
}

TEST(SameEvents, OfTheSameRanksFromTheSamePlaces) {
  const Ranks two{rank_at(0, "tcp://h:1"), rank_at(1, "tcp://h:2")};
  EXPECT_TRUE(same_events(two, two));
  EXPECT_FALSE(same_events(two, {rank_at(0, "tcp://h:1"), rank_at(1, "tcp://h:3")}));
  EXPECT_FALSE(same_events(two, {rank_at(0, "tcp://h:1"), rank_at(2, "tcp://h:2")}));
  EXPECT_FALSE(same_events(two, {rank_at(0, "tcp://h:1"), {.number = 1}}));
  Ranks replayed = two;
  replayed[0].events->replay = "tcp://h:9";
  EXPECT_FALSE(same_events(two, replayed));
}

TEST(SameEvents, RanksWithoutEventsMatterOnlyForALoneFirst) {
  const FoundRank first = rank_at(0, "tcp://h:1");
  EXPECT_TRUE(same_events({first, {.number = 1}}, {first, {.number = 1}, {.number = 2}}));
  EXPECT_FALSE(same_events({first}, {first, {.number = 1}}));
  EXPECT_TRUE(same_events({{.number = 0}}, {{.number = 0}, {.number = 1}}));
}

CacheFacts verified() { return {.health = FeedHealth::Verified, .missing = {.forgotten = false}}; }

Feed waiting_feed() {
  Feed feed;
  feed.unverified = reason_of(FeedHealth::Waiting);
  return feed;
}

TEST(FeedFacts, FeedIsPreciseWhenCompleteOrSaysWhyNot) {
  Feed feed = waiting_feed();
  EXPECT_TRUE(take_facts(feed, verified()).health);
  EXPECT_EQ(feed.unverified, "");
  EXPECT_EQ(feed.incomplete, "");
  EXPECT_FALSE(take_facts(feed, verified()).health) << "no news";
  EXPECT_TRUE(take_facts(feed, {.health = FeedHealth::Replaying}).health);
  EXPECT_EQ(feed.unverified, "replaying events");
}

TEST(FeedFacts, ShowsTheAgentsOwnReason) {
  Feed feed = waiting_feed();
  CacheFacts facts = verified();
  facts.health = FeedHealth::ToldBadly;
  facts.reason = "two agents tell of it: a and b";
  EXPECT_TRUE(take_facts(feed, facts).health);
  EXPECT_EQ(feed.unverified, "two agents tell of it: a and b");
  facts.reason.clear();
  EXPECT_TRUE(take_facts(feed, facts).health);
  EXPECT_EQ(feed.unverified, "its agent has not proved that it has all KV events");
}

TEST(FeedFacts, AnEngineThatHasAnnouncedNothingMayHaveNothing) {
  Feed feed = waiting_feed();
  CacheFacts facts = verified();
  facts.missing.forgotten = true;
  take_facts(feed, facts);
  EXPECT_EQ(feed.incomplete, "");
  facts.sequence = 7;
  EXPECT_TRUE(take_facts(feed, facts).health);
  EXPECT_EQ(feed.incomplete,
            "no replay endpoint: blocks from before the router connected, or from lost events, are "
            "unknown");
  facts.missing.forgotten = false;
  EXPECT_TRUE(take_facts(feed, facts).health) << "an emptied cache holds nothing from before";
  EXPECT_EQ(feed.incomplete, "");
}

TEST(FeedFacts, ReplayEndpointCompletesAFeedUnlessSilent) {
  Feed feed = waiting_feed();
  CacheFacts facts = verified();
  facts.has_replay = true;
  facts.missing.forgotten = true;
  facts.sequence = 7;
  take_facts(feed, facts);
  EXPECT_EQ(feed.incomplete, "");
  facts.sequence.reset();
  facts.replay_silent = true;
  EXPECT_TRUE(take_facts(feed, facts).health);
  EXPECT_EQ(feed.incomplete, "its replay endpoint does not answer: earlier blocks are unknown");
  facts.missing.forgotten = false;
  take_facts(feed, facts);
  EXPECT_EQ(feed.incomplete, "") << "what it would have told is known";
}

TEST(FeedFacts, OtherReasonsForMissingBlocksAreNotTheFeeds) {
  Feed feed = waiting_feed();
  CacheFacts facts = verified();
  facts.sequence = 7;
  facts.missing.unknown_content = facts.missing.no_room = true;
  take_facts(feed, facts);
  EXPECT_EQ(feed.incomplete, "");
}

TEST(FeedFacts, BlockSizeCountsOnceInAnEvent) {
  Feed feed = waiting_feed();
  CacheFacts facts = verified();
  facts.block_size = 16;
  EXPECT_FALSE(take_facts(feed, facts).block_size) << "as configured, no event has confirmed it";
  EXPECT_EQ(feed.block_size, AnnouncedBlockSize());
  facts.sequence = 0;
  EXPECT_TRUE(take_facts(feed, facts).block_size);
  EXPECT_EQ(feed.block_size, (AnnouncedBlockSize{.tokens = 16}));
  EXPECT_FALSE(take_facts(feed, facts).block_size);
  facts.block_size.reset();
  EXPECT_FALSE(take_facts(feed, facts).block_size) << "what was told stays so";
  EXPECT_EQ(feed.block_size, (AnnouncedBlockSize{.tokens = 16}));
}

TEST(FeedFacts, ForgetsABlockSizeThatNoEventConfirms) {
  Feed feed = waiting_feed();
  feed.block_size = {.tokens = 32};
  EXPECT_FALSE(take_facts(feed, CacheFacts()).block_size) << "nothing is proved";
  EXPECT_EQ(feed.block_size, (AnnouncedBlockSize{.tokens = 32}));
  EXPECT_TRUE(take_facts(feed, verified()).block_size);
  EXPECT_EQ(feed.block_size, AnnouncedBlockSize());
}

TEST(FeedFacts, ConflictingBlockSizeIsTheLatest) {
  Feed feed = waiting_feed();
  CacheFacts facts = verified();
  facts.sequence = 1;
  facts.block_size = 16;
  take_facts(feed, facts);
  facts.block_size_conflict = 8;
  EXPECT_TRUE(take_facts(feed, facts).block_size);
  EXPECT_EQ(feed.block_size, (AnnouncedBlockSize{.tokens = 8, .has_several = true}));
  facts.block_size = 8;
  facts.block_size_conflict.reset();
  EXPECT_TRUE(take_facts(feed, facts).block_size);
  EXPECT_EQ(feed.block_size, (AnnouncedBlockSize{.tokens = 8}));
}

TEST(FeedFacts, RefusedFeedIsUntrustedButMissesNothing) {
  Feed feed = waiting_feed();
  CacheFacts facts = verified();
  facts.sequence = 1;
  facts.missing.forgotten = true;
  take_facts(feed, facts);
  EXPECT_TRUE(refuse(feed, "no such host"));
  EXPECT_EQ(feed.unverified, "its KV events cannot be read: no such host");
  EXPECT_EQ(feed.incomplete, "");
  EXPECT_FALSE(refuse(feed, "no such host"));
}

}  // namespace
}  // namespace sightline::fleet
