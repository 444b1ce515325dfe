// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/publisher/frame_publisher.h"

#include <chrono>
#include <cstdint>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "router/replicas/frames/stream_codec.h"
#include "tests/unit/router/replicas/publisher/stream.h"

namespace sightline::publisher {
namespace {

using namespace std::chrono_literals;
using frames::Frame;
using frames::NotAvailable;
using frames::RangeAsk;
using frames::StreamAnswer;
using frames::StreamQuestion;
using keys::BlockKey;
using operations::CacheDigest;
using operations::CacheFacts;
using operations::Clear;
using operations::FeedHealth;
using operations::Operation;
using operations::Remove;
using operations::Store;
using operations::Tier;
using test::keys_from;
using test::stored;
using test::Stream;
using test::verified;

TEST(FramePublisher, OpensItsEpochOnceVerifiedAndPublishesAllBlocks) {
  Stream s;
  s.take(stored(1, 3));
  CacheFacts facts;
  facts.health = FeedHealth::Replaying;
  s.tell(facts);
  EXPECT_FALSE(s.publisher.epoch());
  s.hear(StreamQuestion{.nonce = 9, .reader = "r"});
  const auto unproved = s.only<StreamAnswer>("r");
  EXPECT_EQ(unproved.nonce, 9U);
  EXPECT_FALSE(unproved.epoch);
  EXPECT_FALSE(unproved.state.hearing);
  EXPECT_EQ(unproved.state.trouble, "replaying events");
  EXPECT_TRUE(s.frames().empty());

  s.tell(verified());
  const auto frames = s.frames();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].epoch, s.publisher.epoch());
  EXPECT_EQ(frames[0].instance, 77U);
  EXPECT_EQ(frames[0].seq, 1U);
  EXPECT_TRUE(frames[0].operations.empty());
  ASSERT_TRUE(frames[0].beat);
  EXPECT_TRUE(frames[0].beat->hearing);
  EXPECT_EQ(frames[0].beat->digest.of(Tier::Gpu).count, 3U);
}

TEST(FramePublisher, SendsOperationsTogetherSoonAfterTheFirstAndMergesClears) {
  Stream s;
  s.tell(verified());
  s.frames();
  s.take(stored(1));
  s.take(Clear{});
  s.take(Clear{.held = keys_from(1, 1)});
  s.take(stored(2));
  EXPECT_EQ(s.publisher.deadline(), s.now + 250us);
  s.now += 249us;
  EXPECT_TRUE(s.frames().empty());
  s.now += 1us;
  const auto frames = s.frames();
  ASSERT_EQ(frames.size(), 1U);
  const std::vector<Operation> expected = {stored(1), Clear{}, stored(2)};
  EXPECT_EQ(frames[0].operations, expected);
  EXPECT_FALSE(frames[0].beat);
}

TEST(FramePublisher, SplitsWhatIsLargerThanAPayloadAndKeepsTheParents) {
  PublisherOptions options;
  options.payload_bytes_max = 4'096;
  Stream s(options);
  s.bytes_max = 4'096;
  s.tell(verified());
  s.take(Store{.tier = Tier::Cpu, .parent = BlockKey{7}, .keys = keys_from(100, 1'000)});
  s.take(Remove{.tier = Tier::Cpu, .keys = keys_from(100, 1'000)});
  s.now += 1ms;
  BlockKey parent{7};
  std::size_t count = 0;
  std::size_t removed = 0;
  std::uint64_t seq = 0;
  for (const Frame& frame : s.frames()) {
    EXPECT_EQ(frame.seq, ++seq);
    for (const Operation& operation : frame.operations) {
      if (const auto* store = std::get_if<Store>(&operation)) {
        EXPECT_EQ(store->parent, parent);
        parent = store->keys.back();
        count += store->keys.size();
      } else {
        removed += std::get<Remove>(operation).keys.size();
      }
    }
  }
  EXPECT_EQ(count, 1'000U);
  EXPECT_EQ(removed, 1'000U);
}

TEST(FramePublisher, CacheEpochChangeStartsAnotherEpoch) {
  Stream s;
  s.tell(verified());
  s.take(stored(1));
  const auto first = s.publisher.epoch();
  s.frames();
  s.cache.epoch = 6;
  s.take(stored(2));
  const auto last = s.frames().back();
  EXPECT_EQ(last.epoch, first);
  EXPECT_EQ(last.operations.back(), Operation(Clear{}));
  ASSERT_TRUE(last.beat);
  EXPECT_FALSE(last.beat->hearing);
  EXPECT_EQ(last.beat->trouble, "the agent is loading the engine's blocks again");
  EXPECT_EQ(last.beat->digest, CacheDigest{});
  EXPECT_FALSE(s.publisher.epoch());

  s.tell(verified());
  ASSERT_TRUE(s.publisher.epoch());
  EXPECT_NE(s.publisher.epoch(), first);
  const auto frames = s.frames();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].seq, 1U);
  EXPECT_EQ(frames[0].beat->digest.of(Tier::Gpu).count, 1U);
  s.hear(RangeAsk{.reader = "r", .epoch = *first, .from = 1, .to = 1});
  const auto gone = s.only<NotAvailable>("r");
  EXPECT_EQ(gone.what, NotAvailable::MissingPart::Epoch);
  EXPECT_EQ(gone.id, *first);
}

TEST(FramePublisher, PublishesNothingAfterALossUntilTheCachesEpochChanges) {
  Stream s;
  s.tell(verified());
  s.take(stored(1));
  s.publisher.lose_continuity();
  const auto last = s.frames().back();
  EXPECT_EQ(last.operations.back(), Operation(Clear{}));
  EXPECT_FALSE(last.beat->hearing);
  s.take(stored(2));
  s.tell(verified());
  EXPECT_FALSE(s.publisher.epoch());
  EXPECT_EQ(s.publisher.held().size(), 0U);
  s.hear(StreamQuestion{.nonce = 1, .reader = "r"});
  EXPECT_EQ(s.only<StreamAnswer>("r").state.trouble,
            "the agent lost some of its own cache operations");
  s.cache.epoch = 4;
  s.take(stored(3));
  s.hear(StreamQuestion{.nonce = 2, .reader = "r"});
  const auto learning = s.only<StreamAnswer>("r").state;
  EXPECT_FALSE(learning.hearing);  // facts about the epoch before say nothing about this one
  EXPECT_EQ(learning.trouble, "replaying events");
  s.tell(verified());
  EXPECT_TRUE(s.publisher.epoch());
  EXPECT_EQ(s.publisher.held().size(), 1U);
}

TEST(FramePublisher, BeatsEachSecondAndSoonerWhenTheFactsTurn) {
  Stream s;
  s.tell(verified());
  ASSERT_EQ(s.frames().size(), 1U);
  s.now += 999ms;
  EXPECT_TRUE(s.frames().empty());
  EXPECT_EQ(s.publisher.deadline(), s.now + 1ms);
  s.now += 1ms;
  EXPECT_TRUE(s.frames().at(0).beat);
  CacheFacts counted = verified();
  counted.sequence = 8;
  s.tell(counted);
  s.now += 100ms;
  EXPECT_TRUE(s.frames().empty());
  CacheFacts lost = counted;
  lost.health = FeedHealth::Disconnected;
  lost.draining = true;
  s.tell(lost);
  const auto frames = s.frames();
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_FALSE(frames[0].beat->hearing);
  EXPECT_TRUE(frames[0].beat->draining);
  EXPECT_EQ(frames[0].beat->trouble, "event connection lost");
  s.tell(counted);
  s.tell(counted);
  s.now += 99ms;
  EXPECT_TRUE(s.frames().empty());
  s.now += 1ms;
  EXPECT_TRUE(s.frames().at(0).beat->hearing);
  EXPECT_TRUE(s.publisher.epoch());
}

TEST(FramePublisher, SaysFarewellBehindWhatIsPending) {
  Stream s;
  s.tell(verified());
  s.frames();
  s.take(stored(1));
  const auto last = s.publisher.bye();
  ASSERT_EQ(last.size(), 2U);
  const auto frame = std::get<Frame>(frames::decode(last[0].payload)->body);
  EXPECT_EQ(frame.operations.at(0), stored(1));
  const auto bye = std::get<frames::Bye>(frames::decode(last[1].payload)->body);
  EXPECT_EQ(bye.instance, 77U);
}

}  // namespace
}  // namespace sightline::publisher
