// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/followed/followed_stream.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "router/cache/index/exact_index.h"
#include "router/replicas/frames/stream_codec.h"
#include "tests/unit/router/replicas/follower/plain_agent.h"

namespace sightline::followed {
namespace {

using operations::FeedHealth;
using operations::Tier;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::PlainAgent;
using test::removal;
using test::store;

constexpr CacheId kCache{7};
const frames::StreamName kStream{.worker = "w0", .rank = 1};

envelope::SealScope seal_scope() {
  return {.scope = "default/default", .revision = "0", .fingerprint = "f"};
}

// A stream and an agent, connected by a NATS without loss or delay.
class FollowedStreamTest : public ::testing::Test {
 protected:
  FollowedStreamTest() {
    agent.publish({store({1, 2, 3})}, false);
    stream.emplace(
        kCache,
        follower::FollowerSetup{.stream = kStream, .reader = "r-7", .seed = 3, .options = {}},
        FollowedStream::Deps{subjects, sealer, index, index, removals,
                             [this](const std::string& subject, const std::string& payload) {
                               asked.emplace_back(subject, payload);
                             }});
  }
  void connect() { take(nats::Connected{}); }
  void take(const nats::Event& event) {
    stream->take(event, now);
    talk();
  }
  void put(const std::string& subject, const std::string& payload) {
    take(nats::Message{.subject = subject, .reply = {}, .payload = payload});
  }
  std::string sealed(const std::string& subject, const frames::Body& body) const {
    return sealer.seal(subject, frames::encode({.stream = kStream, .body = body}));
  }
  void tell_all(const frames::Body& body) {
    put(stream->events_subject(), sealed(stream->events_subject(), body));
  }
  // Passes requests to the agent and its replies back, until there are no more.
  void talk() {
    stream->turn(now);
    while (!asked.empty()) {
      const auto [subject, bytes] = std::exchange(asked, {}).front();
      ++asks;
      const auto opened = sealer.open(subject, bytes, envelope::kAskVersion);
      ASSERT_TRUE(std::holds_alternative<std::string_view>(opened));
      const auto ask = frames::decode(std::get<std::string_view>(opened));
      ASSERT_TRUE(ask.ok());
      EXPECT_EQ(subject, subjects.asks("w0", 1));
      EXPECT_EQ(ask->stream, kStream);
      if (is_agent_mute) continue;
      for (const auto& answer : agent.hear(ask->body)) {
        const std::string& to = stream->replies_subject();
        stream->take(nats::Message{to, {}, sealed(to, answer)}, now);
      }
      stream->turn(now);
    }
  }
  void wait(Duration duration) {
    const Instant end = now + duration;
    while (now < end) {
      now = std::min(end, std::max(now + milliseconds(1), stream->deadline()));
      talk();
    }
  }
  [[nodiscard]] std::string reason() const { return stream->status().facts.reason; }
  [[nodiscard]] bool is_verified() const {
    return stream->status().facts.health == FeedHealth::Verified;
  }
  [[nodiscard]] std::vector<std::uint64_t> held() const {
    std::vector<std::uint64_t> blocks;
    for (const auto key : index.held(kCache, Tier::Gpu)) blocks.push_back(key.value);
    return blocks;
  }
  [[nodiscard]] std::uint64_t refused(Refusal why) const {
    return stream->status().refused.at(static_cast<std::size_t>(why));
  }
  using Blocks = std::vector<std::uint64_t>;

  Instant now = Instant{} + seconds(1'000);
  const contract::Subjects subjects{"default/default", "0"};
  const envelope::Sealer sealer{contract::development_identity_key(), seal_scope()};
  index::ExactIndex index;
  index::RemovalJournal removals;
  PlainAgent agent{"a", 10, 1'000'000};
  bool is_agent_mute = false;
  std::vector<std::pair<std::string, std::string>> asked;
  std::size_t asks = 0;
  std::optional<FollowedStream> stream;
};

TEST_F(FollowedStreamTest, RequestsNothingBeforeItsSubscriptionAndSaysWhy) {
  talk();
  EXPECT_EQ(asks, 0U);
  EXPECT_EQ(stream->deadline(), Instant::max());
  EXPECT_EQ(stream->status().facts.health, FeedHealth::ToldBadly);
  EXPECT_EQ(reason(), "NATS is not connected yet: messages of its agent do not arrive");
  is_agent_mute = true;
  connect();
  EXPECT_EQ(asks, 1U);
  EXPECT_EQ(reason(), "its agent has not answered");
}

TEST_F(FollowedStreamTest, AgentsBlocksAreVerifiedInTheIndex) {
  connect();
  wait(milliseconds(50));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_EQ(held(), (Blocks{1, 2, 3}));
  tell_all(agent.publish({store({4}), removal(2)}, true));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_EQ(held(), (Blocks{1, 3, 4}));
  EXPECT_EQ(stream->status().at.position, 2U);
  EXPECT_EQ(stream->status().at.agent->name, "a");
}

TEST_F(FollowedStreamTest, WithdrawalsStandInTheJournal) {
  connect();
  wait(milliseconds(50));
  const auto before = removals.position();
  const std::vector<keys::BlockKey> two{{2}};
  const std::vector<keys::BlockKey> three{{3}};
  tell_all(agent.publish({removal(2)}, true));
  EXPECT_EQ(removals.withdrawn_since(before, kCache, two), true);
  EXPECT_EQ(removals.withdrawn_since(before, kCache, three), false);
  stream->forget();
  EXPECT_EQ(removals.withdrawn_since(before, kCache, three), true);
}

TEST_F(FollowedStreamTest, CountsUnreadableMessagesByReason) {
  connect();
  wait(milliseconds(50));
  const auto dropped_before = stream->status().statistics.dropped;
  const std::string& events = stream->events_subject();
  const std::string good = sealed(events, agent.publish({store({9})}, true));

  put(events, good.substr(0, 5));
  EXPECT_EQ(refused(Refusal::TooShort), 1U);

  std::string other_version = good;
  ++other_version[0];
  put(events, other_version);
  EXPECT_EQ(refused(Refusal::OtherVersion), 1U);

  std::string damaged = good;
  ++damaged.back();
  put(events, damaged);
  put(stream->replies_subject(), good);  // replayed under another subject
  contract::IdentityKey key = contract::development_identity_key();
  ++key.bytes[0];
  const frames::Message message{.stream = kStream, .body = agent.publish({}, true)};
  put(events, envelope::Sealer(key, seal_scope()).seal(events, frames::encode(message)));
  auto other_model = seal_scope();
  other_model.fingerprint = "g";
  put(events, envelope::Sealer(contract::development_identity_key(), other_model)
                  .seal(events, frames::encode(message)));
  EXPECT_EQ(refused(Refusal::WrongTag), 4U);

  put(events, sealer.seal(events, "what only the key's holders could send, and is nothing"));
  EXPECT_EQ(refused(Refusal::Malformed), 1U);

  const frames::Message other_stream{.stream = {.worker = "w1", .rank = 1}, .body = message.body};
  put(events, sealer.seal(events, frames::encode(other_stream)));
  EXPECT_EQ(refused(Refusal::OtherStream), 1U);

  EXPECT_EQ(held(), (Blocks{1, 2, 3}));
  EXPECT_EQ(stream->status().statistics.dropped, dropped_before) << "none got as far";
  put(events, good);
  EXPECT_EQ(held(), (Blocks{1, 2, 3, 9}));
}

TEST_F(FollowedStreamTest, SilentAgentIsUnverifiedAfter5sAndForgottenAfter60s) {
  connect();
  wait(milliseconds(50));
  ASSERT_TRUE(is_verified());
  is_agent_mute = true;
  wait(milliseconds(4'900));
  EXPECT_TRUE(is_verified()) << reason();
  wait(milliseconds(200));
  EXPECT_FALSE(is_verified());
  EXPECT_EQ(reason().rfind("its agent a has been dead since ", 0), 0U) << reason();
  wait(seconds(54));
  EXPECT_EQ(held(), (Blocks{1, 2, 3})) << "it may come back";
  wait(seconds(2));
  EXPECT_EQ(held(), Blocks{});
  EXPECT_EQ(stream->status().statistics.forgotten, 1U);
  is_agent_mute = false;
  wait(seconds(4));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_EQ(held(), (Blocks{1, 2, 3}));
}

TEST_F(FollowedStreamTest, ShortLossOfNatsEndsWithAnEqualDigest) {
  connect();
  wait(milliseconds(50));
  take(nats::Disconnected{"killed"});
  wait(milliseconds(4'900));
  EXPECT_TRUE(is_verified()) << reason();
  const auto asked_before = asks;
  wait(milliseconds(200));
  EXPECT_EQ(reason(), "NATS cannot be reached: messages of its agent do not arrive");
  wait(seconds(10));
  EXPECT_EQ(asks, asked_before) << "nobody would hear it";
  agent.publish({removal(1)}, true);
  connect();
  EXPECT_FALSE(is_verified());
  wait(seconds(2));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_EQ(held(), (Blocks{2, 3}));
}

TEST_F(FollowedStreamTest, LostMessagesAreRequestedFromTheAgent) {
  connect();
  wait(milliseconds(50));
  agent.publish({removal(1)}, true);
  const auto asked_before = asks;
  take(nats::Lost{.messages = 1, .reason = "the reader is too slow: its inbox is full"});
  wait(seconds(1));
  EXPECT_GT(asks, asked_before);
  EXPECT_EQ(held(), (Blocks{2, 3}));
  EXPECT_EQ(stream->status().lost, 1U);
  EXPECT_EQ(stream->status().losses, 1U);
}

TEST_F(FollowedStreamTest, AuditsRelearnReachesTheAgentOnce) {
  connect();
  wait(milliseconds(50));
  stream->relearn(now);
  talk();
  stream->relearn(now);
  talk();
  const auto statistics = stream->status().statistics;
  EXPECT_EQ(statistics.relearn_asks, 1U);
  EXPECT_EQ(statistics.relearn_put_off, 1U);
}

TEST_F(FollowedStreamTest, WorkersNameCannotLeaveItsSubject) {
  for (const std::string name : {"*", ">", "a.b", "a b", "w\r\nPUB x 0\r\n", "", "%2A"}) {
    follower::FollowerSetup setup{
        .stream = {.worker = name, .rank = 0}, .reader = "r.*", .seed = 1, .options = {}};
    const FollowedStream hostile(CacheId{8}, setup,
                                 {subjects, sealer, index, index, removals, nullptr});
    for (const std::string& subject : {hostile.events_subject(), hostile.replies_subject()}) {
      EXPECT_EQ(subject.rfind("sl.default.default.0.", 0), 0U);
      EXPECT_EQ(subject.find_first_of("*> \r\n"), std::string::npos) << subject;
      EXPECT_LE(std::count(subject.begin(), subject.end(), '.'), 6) << subject;
    }
    EXPECT_NE(hostile.events_subject(), stream->events_subject());
  }
}

TEST_F(FollowedStreamTest, WhatIsNotUsedIsSaidToBeSo) {
  connect();
  wait(milliseconds(50));
  const std::string& events = stream->events_subject();
  const auto message = [&](const std::string& payload) {
    return nats::Message{.subject = events, .reply = {}, .payload = payload};
  };
  const std::string frame = sealed(events, agent.publish({store({4})}, true));
  EXPECT_FALSE(stream->take(message("garbage"), now));
  EXPECT_TRUE(stream->take(message(frame), now));
  EXPECT_FALSE(stream->take(message(frame), now));
}

TEST_F(FollowedStreamTest, OwnLateMessagesDoNotMakeAnAgentDead) {
  connect();
  wait(milliseconds(50));
  stream->nats_fresh(now);
  is_agent_mute = true;
  wait(milliseconds(5'200));
  EXPECT_EQ(reason(), "NATS is late: the state from its agent is older than replica.stale_after");
  EXPECT_FALSE(stream->status().at.dead_since);
  stream->nats_fresh(now);
  wait(milliseconds(100));
  EXPECT_FALSE(stream->status().at.dead_since) << "it was not heard, for no fault of its own";
  for (int i = 0; i < 6; ++i) {
    wait(seconds(1));
    stream->nats_fresh(now);
  }
  wait(milliseconds(10));
  EXPECT_TRUE(stream->status().at.dead_since) << reason();
}

}  // namespace
}  // namespace sightline::followed
