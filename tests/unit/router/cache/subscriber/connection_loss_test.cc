// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// The state of an engine's cache while its connection comes and goes.
#include "router/engine/vllm/vllm.h"
#include "tests/unit/router/cache/subscriber/publisher.h"
#include "tests/unit/router/cache/subscriber/relay.h"

namespace sightline::subscriber {
namespace {

class ConnectionLoss : public SubscriberTest {
 protected:
  // A publisher with replay, whose messages 0 … last have been applied.
  void start_verified(Publisher& publisher, std::uint64_t last) {
    start();
    events_ = publisher.bind_events();
    replay_ = publisher.bind_replay();
    relay_.emplace(events_);
    follow({.events = relay_->endpoint(), .replay = replay_});
    EXPECT_EQ(publisher.await_replay_request(), 0U);
    for (std::uint64_t i = 0; i <= last; ++i) publisher.answer(i);
    publisher.end_replay(last);
    await_verified();
    EXPECT_EQ(index_.blocks(kEngine), last + 1);
  }

  // The callback comes a moment after the status has changed.
  void await_changes(const std::vector<FeedHealth>& want) {
    await([&] { return changes().size() >= want.size(); });
    EXPECT_EQ(changes(), want);
  }

  std::optional<fakes::Relay> relay_;  // to events_
  std::string events_;
  std::string replay_;
};

TEST_F(ConnectionLoss, EngineIsVerifiedAfterItsFirstReplay) {
  start_verified(publisher_, 2);
  await_changes({FeedHealth::Replaying, FeedHealth::Verified});
}

TEST_F(ConnectionLoss, EngineWithoutReplayIsVerifiedOnceConnected) {
  start();
  follow({.events = publisher_.bind_events()});
  await_verified();
  await_changes({FeedHealth::Verified});
}

TEST_F(ConnectionLoss, AnEngineThatIsNotUpIsWaitedFor) {
  start();
  follow({.events = "tcp://127.0.0.1:1"});
  EXPECT_EQ(status().facts.health, FeedHealth::Waiting);
  EXPECT_EQ(status().connections_lost, 0U);
}

TEST_F(ConnectionLoss, GapEndsVerificationUntilItIsFilled) {
  start_verified(publisher_, 0);
  publisher_.publish(3);
  EXPECT_EQ(publisher_.await_replay_request(), 0U);
  EXPECT_EQ(status().facts.health, FeedHealth::Replaying);
  for (std::uint64_t i = 0; i <= 3; ++i) publisher_.answer(i);
  publisher_.end_answers();
  await_verified();
  EXPECT_EQ(index_.blocks(kEngine), 4U);
  await_changes(
      {FeedHealth::Replaying, FeedHealth::Verified, FeedHealth::Replaying, FeedHealth::Verified});
}

TEST_F(ConnectionLoss, LossIsReportedAndAReplayProvesHeldBlocks) {
  start_verified(publisher_, 1);
  relay_->close_door(true);
  relay_->cut();
  await([&] { return status().facts.health == FeedHealth::Disconnected; });
  relay_->close_door(false);
  EXPECT_EQ(publisher_.await_replay_request(), 1U);
  EXPECT_EQ(status().facts.health, FeedHealth::Replaying);
  EXPECT_EQ(status().connections_lost, 1U);
  EXPECT_EQ(index_.blocks(kEngine), 2U) << "kept, in case it is proved";
  for (std::uint64_t i = 1; i <= 2; ++i) publisher_.answer(i);  // one of them was missed
  publisher_.end_replay(2);
  await_changes({FeedHealth::Replaying, FeedHealth::Verified, FeedHealth::Disconnected,
                 FeedHealth::Replaying, FeedHealth::Verified});
  EXPECT_EQ(index_.blocks(kEngine), 3U);
  EXPECT_EQ(status().stream.drops, 0U);
}

TEST_F(ConnectionLoss, TimeRevealsARestartWithEqualNumbersAndHashes) {
  auto first = std::make_unique<Publisher>();
  start_verified(*first, 1);
  first.reset();
  await([&] { return status().facts.health == FeedHealth::Disconnected; });
  Publisher second;
  second.time_s = 2.0;  // the same blocks under the same hashes and numbers, announced later
  second.bind_replay(replay_.c_str());
  second.bind_events(events_);
  EXPECT_EQ(second.await_replay_request(), 1U);
  second.answer(1);
  EXPECT_EQ(second.await_replay_request(), 0U);
  await([&] { return index_.blocks(kEngine) == 0; });
  EXPECT_EQ(status().stream.drops, 1U);
  EXPECT_EQ(status().facts.health, FeedHealth::Replaying);
  second.answer(0);
  second.answer(1);
  second.end_replay(1);
  await_verified();
  EXPECT_EQ(index_.blocks(kEngine), 2U);
  EXPECT_EQ(status().batch_timestamp_s, 2.0);
}

TEST_F(ConnectionLoss, WithoutReplayAReconnectDropsWhatNothingVouchesFor) {
  start();
  fakes::Relay relay(publisher_.bind_events());
  follow({.events = relay.endpoint()});
  publisher_.await_subscriber();
  publisher_.publish(0);
  publisher_.publish(1);
  await_sequence(1);
  relay.cut();
  publisher_.await_unsubscribed();
  publisher_.await_subscriber();
  await_verified();
  EXPECT_EQ(index_.blocks(kEngine), 0U);
  EXPECT_EQ(status().stream.drops, 1U);
  // Replaces message 2 of the old life. Its number alone does not show that.
  const auto root = pack::batch({pack::stored({7}, pack::nil(), {77})}, 2.0);
  publisher_.publish(2, {root.begin(), root.end()});
  await_sequence(2);
  EXPECT_EQ(index_.blocks(kEngine), 1U);
}

TEST_F(ConnectionLoss, SilentPeerIsDetectedAndReturnsVerified) {
  options.follow.heartbeat = {.interval = std::chrono::milliseconds(100),
                              .timeout = std::chrono::seconds(3)};
  start_verified(publisher_, 0);
  relay_->freeze(true);  // the peer sends no byte and no end
  await([&] { return status().facts.health == FeedHealth::Disconnected; });
  publisher_.publish(1);  // into the void
  relay_->freeze(false);
  EXPECT_EQ(publisher_.await_replay_request(), 0U);
  publisher_.answer(0);
  publisher_.answer(1);
  publisher_.end_replay(1);
  await_verified();
  EXPECT_EQ(index_.blocks(kEngine), 2U);
  EXPECT_EQ(status().stream.drops, 0U);
}

TEST_F(ConnectionLoss, AProbeOfABoundPortIsNotTheEngine) {
  start();
  const auto address = free_address();
  follow({.events = address, .bind = true});
  publisher_.connect_events(address);
  publisher_.await_subscriber();
  publisher_.publish(0);
  await_sequence(0);
  for (const auto& bytes :
       {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(50, 0)}) {
    auto probe = fakes::RawSocket::connect(fakes::port_of(address));
    ASSERT_TRUE(probe.send(bytes));
    probe.end_sending();
    probe.receive_all();  // until it is closed
  }
  publisher_.publish(1);
  await_sequence(1);
  EXPECT_EQ(status().connections_lost, 0U);
  EXPECT_EQ(index_.blocks(kEngine), 2U);
  await_changes({FeedHealth::Verified});
}

TEST_F(ConnectionLoss, OldConnectionMayEndAfterTheNewOne) {
  start();
  const auto address = free_address();
  follow({.events = address, .bind = true});
  auto old = std::make_unique<Publisher>();
  old->connect_events(address);
  old->await_subscriber();
  old->publish(0);
  old->publish(1);
  await_sequence(1);
  publisher_.connect_events(address);
  publisher_.await_subscriber();
  await([&] { return index_.blocks(kEngine) == 0; });  // no feed verifies its blocks
  old.reset();
  await([&] { return status().connections_lost == 1; });
  await_verified();
  publisher_.publish(0);
  await_sequence(0);
  EXPECT_EQ(index_.blocks(kEngine), 1U);
  EXPECT_EQ(status().facts.health, FeedHealth::Verified);
}

TEST_F(ConnectionLoss, EngineMistakenForAnotherPeerReturns) {
  start();
  const auto address = free_address();
  follow({.events = address, .bind = true});
  await_opened();
  auto probe = fakes::RawSocket::connect(fakes::port_of(address));
  publisher_.connect_events(address);
  await_verified();
  probe.close();  // it was there before: for libzmq it may be the engine
  await([&] { return status().connections_lost > 0; });
  await_verified();
}

TEST_F(ConnectionLoss, RelearnForgetsAndRequestsAllMessages) {
  start_verified(publisher_, 2);
  subscriber_->relearn(kEngine, true);
  EXPECT_EQ(publisher_.await_replay_request(), 0U);
  EXPECT_EQ(index_.blocks(kEngine), 0U);
  EXPECT_EQ(status().facts.health, FeedHealth::Replaying);
  publisher_.answer(0);
  publisher_.end_replay(0);
  await_verified();
  EXPECT_EQ(index_.blocks(kEngine), 1U);
  EXPECT_EQ(status().stream.relearns, 1U);
}

TEST_F(ConnectionLoss, RelearnWithoutReplayAppliesTheNextMessage) {
  start_verified(publisher_, 1);
  subscriber_->relearn(kEngine, false);
  await([&] { return status().stream.relearns == 1; });
  EXPECT_EQ(index_.blocks(kEngine), 0U);
  const auto root = pack::batch({pack::stored({7}, pack::nil(), {77})}, 2.0);
  publisher_.publish(2, {root.begin(), root.end()});
  await_sequence(2);
  EXPECT_EQ(index_.blocks(kEngine), 1U);
  EXPECT_EQ(status().facts.health, FeedHealth::Verified);
}

TEST_F(ConnectionLoss, AThousandEnginesAreFollowedAtOnce) {
  constexpr std::uint32_t kEngines = 1000;
  start();
  for (std::uint32_t i = 0; i < kEngines; ++i) {
    subscriber_->add({.events = publisher_.bind_events()},
                     {.id = CacheId{i}, .format = &vllm::vllm(), .model = "m"});
  }
  const auto count = [&](const auto& condition) {
    const auto all = subscriber_->statuses();
    return std::count_if(all.begin(), all.end(), condition);
  };
  await([&] {
    return count([](const auto& s) { return s.facts.health == FeedHealth::Verified; }) == kEngines;
  });
  await([&, looks = 0]() mutable {
    // A subscription has effect some time after the connection.
    if (looks++ % 100 == 0) publisher_.publish(0);
    return count([](const auto& s) { return s.facts.sequence == 0U; }) == kEngines;
  });
  EXPECT_EQ(index_.blocks(CacheId{kEngines - 1}), 1U);
  for (std::uint32_t i = 0; i < kEngines; ++i) subscriber_->remove(CacheId{i});
  await([&] { return index_.blocks_total() == 0; });
}

}  // namespace
}  // namespace sightline::subscriber
