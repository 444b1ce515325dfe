// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/agent/rank_stream.h"

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "router/replicas/frames/stream_codec.h"

namespace sightline::agent {
namespace {

using namespace std::chrono_literals;
using frames::Frame;
using operations::CacheName;
using operations::FeedHealth;
using operations::Tier;

class HandClock : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] WallTime wall() const override { return {}; }
  void pass(Duration time) { now_ += time; }

 private:
  Instant now_{std::chrono::hours(1)};
};

constexpr CacheId kFirst{1};
constexpr CacheId kSecond{2};

class RankStreamOf : public testing::Test {
 protected:
  RankStream::Deps setup() {
    return {.name = {.worker = "w0", .rank = 0},
            .agent = {.name = "agent", .number = 7},
            .options = {},
            .draw = [this] { return ++drawn_; },
            .told_due = [this](Instant due) { told_ = due; }};
  }
  void store(CacheId cache, std::uint64_t block, std::uint64_t epoch = 0) {
    stream_.take(cache, CacheName{.worker = "w0", .rank = 0, .epoch = epoch},
                 operations::Store{.tier = Tier::Gpu, .parent = {}, .keys = {{block}}});
  }
  void tell(CacheId cache, FeedHealth health, std::uint64_t epoch = 0) {
    CacheReport told{.epoch = epoch, .facts = {}, .lag_by_stamp = {}};
    told.facts.health = health;
    told.facts.has_replay = true;
    stream_.tell(cache, told);
  }
  std::vector<Frame> frames_at(Instant now) {
    std::vector<Frame> found;
    for (const auto& one : stream_.turn(now).outgoing) {
      auto message = frames::decode(one.payload);
      EXPECT_TRUE(message.ok());
      if (auto* frame = std::get_if<Frame>(&message->body)) found.push_back(std::move(*frame));
    }
    return found;
  }
  [[nodiscard]] std::uint64_t blocks() const { return stream_.view().digest.of(Tier::Gpu).count; }

  HandClock clock_;
  std::uint64_t drawn_ = 0;
  Instant told_{};
  RankStream stream_{setup(), clock_};
};

TEST_F(RankStreamOf, NoFeedSaysWhyAndOpensNoEpoch) {
  stream_.explain("it is down");
  EXPECT_FALSE(stream_.view().epoch);
  EXPECT_EQ(stream_.view().facts.reason, "it is down");
  EXPECT_EQ(stream_.view().facts.health, FeedHealth::ToldBadly);
  stream_.begin_feed(kFirst);
  stream_.explain("it is down");
  EXPECT_EQ(stream_.view().facts.health, FeedHealth::Waiting);
}

TEST_F(RankStreamOf, WakesItsThreadForADueOperation) {
  stream_.begin_feed(kFirst);
  tell(kFirst, FeedHealth::Verified);
  EXPECT_FALSE(frames_at(clock_.now()).empty());
  clock_.pass(300ms);
  store(kFirst, 5);
  tell(kFirst, FeedHealth::Verified);
  EXPECT_EQ(told_, clock_.now() + 250us);
  EXPECT_EQ(stream_.due(), told_);
  EXPECT_TRUE(frames_at(clock_.now()).empty());
  const auto frames = frames_at(told_);
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].operations.size(), 1U);
}

// Both feeds' caches count their epochs from 0.
TEST_F(RankStreamOf, AnotherFeedNeverContinuesTheEpochOfTheOneBefore) {
  stream_.begin_feed(kFirst);
  tell(kFirst, FeedHealth::Verified);
  store(kFirst, 5);
  tell(kFirst, FeedHealth::Verified);
  const auto first = stream_.view().epoch;
  stream_.begin_feed(kSecond);
  EXPECT_FALSE(stream_.view().epoch);
  EXPECT_EQ(blocks(), 0U);
  store(kSecond, 6);
  tell(kSecond, FeedHealth::Verified);
  ASSERT_TRUE(stream_.view().epoch);
  EXPECT_NE(stream_.view().epoch, first);
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(RankStreamOf, IgnoresAnEarlierFeed) {
  stream_.begin_feed(kFirst);
  stream_.begin_feed(kSecond);
  tell(kSecond, FeedHealth::Verified);
  store(kFirst, 5);
  tell(kFirst, FeedHealth::Disconnected);
  stream_.end_feed(kFirst);
  EXPECT_EQ(blocks(), 0U);
  EXPECT_TRUE(stream_.has_feed());
  EXPECT_EQ(stream_.view().facts.health, FeedHealth::Verified);
}

TEST_F(RankStreamOf, RestartedEngineEndsTheEpochBeforeItsFirstBlock) {
  stream_.begin_feed(kFirst);
  tell(kFirst, FeedHealth::Verified);
  const auto first = stream_.view().epoch;
  tell(kFirst, FeedHealth::Replaying, 1);
  EXPECT_FALSE(stream_.view().epoch);
  tell(kFirst, FeedHealth::Verified, 1);
  EXPECT_NE(stream_.view().epoch, first);
}

TEST_F(RankStreamOf, RelearnRequestNamesTheFeedAndItsReplay) {
  stream_.begin_feed(kFirst);
  tell(kFirst, FeedHealth::Verified);
  (void)stream_.turn(clock_.now());
  stream_.hear({.stream = {.worker = "w0", .rank = 0},
                .body = frames::RelearnAsk{.reader = "r",
                                           .epoch = stream_.view().epoch.value_or(0),
                                           .freshness = {.agent = 7, .number = 1}}},
               clock_.now());
  EXPECT_LE(stream_.due(), clock_.now());
  const auto turn = stream_.turn(clock_.now());
  EXPECT_EQ(turn.relearn, kFirst);
  EXPECT_TRUE(turn.has_replay);
  EXPECT_FALSE(stream_.turn(clock_.now()).relearn);
}

TEST_F(RankStreamOf, PublishesDrainingWithinATenthOfASecond) {
  stream_.begin_feed(kFirst);
  tell(kFirst, FeedHealth::Verified);
  (void)stream_.turn(clock_.now());
  stream_.drain();
  const auto frames = frames_at(clock_.now() + 100ms);
  ASSERT_EQ(frames.size(), 1U);
  ASSERT_TRUE(frames[0].beat);
  EXPECT_TRUE(frames[0].beat->draining);
  tell(kFirst, FeedHealth::Verified);
  EXPECT_TRUE(stream_.view().facts.draining);
}

TEST_F(RankStreamOf, DrainingEndsWithTheEngineThatWasDrained) {
  stream_.begin_feed(kFirst);
  stream_.drain();
  stream_.end_feed(kFirst);
  EXPECT_TRUE(stream_.view().facts.draining) << "nothing else is there yet";
  stream_.begin_feed(kSecond);
  EXPECT_FALSE(stream_.view().facts.draining);
}

TEST_F(RankStreamOf, EngineDrainedBeforeItsStartOpensOnceItRuns) {
  stream_.drain();
  EXPECT_TRUE(stream_.view().facts.draining);
  stream_.begin_feed(kFirst);
  EXPECT_FALSE(stream_.view().facts.draining);
}

TEST_F(RankStreamOf, DrainingContinuesAtTheEnginesNewAddress) {
  stream_.begin_feed(kFirst);
  stream_.drain();
  stream_.begin_feed(kSecond);
  stream_.end_feed(kFirst);
  EXPECT_TRUE(stream_.view().facts.draining);
}

}  // namespace
}  // namespace sightline::agent
