// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Engines that wait while replays run: their turns, the limit of held bytes, and no blame for the
// wait.
#include <deque>
#include <list>

#include "router/engine/vllm/vllm.h"
#include "tests/unit/router/cache/subscriber/publisher.h"
#include "tests/unit/router/cache/subscriber/relay.h"

namespace sightline::subscriber {
namespace {

using namespace std::chrono_literals;

class HeldBack : public SubscriberTest {
 protected:
  void follow_as(std::uint32_t cache, const FeedEndpoints& endpoints) {
    subscriber_->add(endpoints, {.id = CacheId{cache}, .format = &vllm::vllm(), .model = "m"});
  }
};

TEST(ReplayPlaces, AreFewAndGivenInTurn) {
  ReplayPlaces places;
  const auto count = static_cast<std::uint32_t>(ReplayPlaces::kPlaces);
  for (std::uint32_t i = 0; i < count + 3; ++i) places.want(CacheId{i});
  places.want(CacheId{0});
  for (std::uint32_t i = 0; i < count; ++i) EXPECT_EQ(places.next(), CacheId{i});
  EXPECT_FALSE(places.next().has_value());
  places.give_up(CacheId{count});  // that waits
  places.give_up(CacheId{5});      // that has one
  EXPECT_EQ(places.next(), CacheId{count + 1});
  EXPECT_FALSE(places.next().has_value());
  EXPECT_TRUE(places.anybody_waits());
  EXPECT_TRUE(places.has(CacheId{count + 1}) && places.wants(CacheId{count + 2}));
}

TEST_F(HeldBack, UnansweredReplaysLeaveTheirPlacesToOthers) {
  options.follow.place_silence = 5ms;
  start();
  std::list<Publisher> silent(2 * ReplayPlaces::kPlaces);
  std::uint32_t cache = 100;
  for (auto& publisher : silent) {
    const auto replay = publisher.bind_replay();
    follow_as(cache++, {.events = publisher.bind_events(), .replay = replay});
  }
  for (auto& publisher : silent) EXPECT_EQ(publisher.await_replay_request(), 0U);
  const auto replay = publisher_.bind_replay();
  follow({.events = publisher_.bind_events(), .replay = replay});
  publisher_.await_replay_request();
  publisher_.answer(0);
  publisher_.end_replay(0);
  await_verified();
  // A late answer is still used.
  silent.back().answer(0);
  silent.back().end_replay(0);
  const CacheId late{cache - 1};
  await([&] { return subscriber_->status(late)->facts.health == FeedHealth::Verified; });
  EXPECT_EQ(subscriber_->status(late)->stream.replay_timeouts, 0U);
}

TEST_F(HeldBack, EngineWithUnreadEventsIsNotSilent) {
  options.follow.heartbeat = {.interval = 100ms, .timeout = 3s};
  options.stream.buffered_messages_max = 3;
  start();
  follow_replaying();
  // More than libzmq and the kernel buffer.
  constexpr std::uint64_t kMessages = 300;  // fewer than the publisher keeps
  for (std::uint64_t i = 1; i <= kMessages; ++i) {
    publisher_.publish(i, payload_of(i) + std::string(60'000, ' '));
  }
  await([&] { return status().held_back; });
  const auto until = system_clock().now() + 2 * options.follow.heartbeat.timeout;
  await([&] { return system_clock().now() > until; });
  EXPECT_EQ(status().connections_lost, 0U);
  EXPECT_EQ(status().stream.buffer_overflows, 0U);
  EXPECT_LT(subscriber_->held_bytes(), 4U << 16U);
  publisher_.answer(0);
  publisher_.end_answers();
  await_sequence(kMessages);
  EXPECT_EQ(status().stream.gaps, 0U);
  EXPECT_EQ(subscriber_->held_bytes(), 0U);
}

TEST_F(HeldBack, WhatAllEnginesHoldIsBoundedAndCounted) {
  options.held_bytes_max = (1U << 20U) + 100'000;
  start();
  follow_replaying();
  for (std::uint64_t i = 1; i <= 10; ++i) {
    publisher_.publish(i, payload_of(i) + std::string(50'000, ' '));
  }
  await([&] { return status().held_back && subscriber_->held_hits() == 1; });
  EXPECT_LE(subscriber_->held_bytes(), options.held_bytes_max);
  publisher_.answer(0);
  publisher_.end_answers();
  await_sequence(10);
  EXPECT_EQ(subscriber_->held_bytes(), 0U);
}

TEST_F(HeldBack, NoMessageIsLeftLyingWhenConnectionsAreLookedAfter) {
  options.follow.heartbeat = {.interval = 1ms, .timeout = 60s};
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  for (std::uint64_t i = 0; i < 3000; ++i) {
    publisher_.publish(i);
    if (i % 3 == 0) await_sequence(i);
  }
  await_sequence(2999);
}

// libzmq's limit counts whole messages, so it would not limit this one.
TEST_F(HeldBack, AMessageWithoutEndClosesItsConnection) {
  options.follow.heartbeat = {.interval = 20ms, .timeout = 60s};
  start();
  const auto address = free_address();
  follow({.events = address, .bind = true});
  await_opened();
  auto peer = fakes::RawSocket::connect(fakes::port_of(address));
  // ZMTP 3.0: signature, version, mechanism NULL, not a server. Then the command READY.
  std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL", 16);
  greeting.resize(64, '\0');
  const std::string ready("\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB", 27);
  ASSERT_TRUE(peer.send(greeting + ready));
  await_verified();
  const std::string part = std::string("\x03\0\0\0\0\0\0\x80\0", 9) + std::string(1U << 15U, 'x');
  std::size_t sent = 0;
  while (peer.send(part)) sent += part.size();
  await([&] { return status().overruns == 1; });
  EXPECT_GT(sent, 16U << 20U);
  EXPECT_EQ(status().facts.health, FeedHealth::Disconnected);
  publisher_.connect_events(address);
  publisher_.await_subscriber();
  publisher_.publish(0);
  await_sequence(0);
}

TEST(UnreadBytes, AreWhatCameLessWhatWasTaken) {
  constexpr std::size_t kFrame = 64U << 20U;
  constexpr std::size_t kMiB = 1U << 20U;
  UnreadBytes unread(kFrame);
  std::uint64_t taken = 0;
  // Any amount is allowed as long as messages are taken, and so are heartbeats without end.
  for (int i = 0; i < 1000; ++i)
    EXPECT_FALSE(unread.is_too_much({.bytes = kMiB}, taken += kMiB, 1s, false));
  for (int i = 0; i < 100'000; ++i)
    EXPECT_FALSE(unread.is_too_much({.bytes = 100}, taken, 3600s, false));
  EXPECT_FALSE(unread.is_too_much({.bytes = 70 * kMiB}, taken, 1s, false));
  EXPECT_FALSE(unread.is_too_much({.bytes = 70 * kMiB}, taken, 1s, true)) << "whole messages wait";
  EXPECT_TRUE(unread.is_too_much({.bytes = 0}, taken, 1s, false));
  EXPECT_TRUE(unread.is_too_much({.bytes = 200 * kMiB}, taken, 1s, true));
  EXPECT_FALSE(unread.is_too_much({.bytes = 0}, taken + 300 * kMiB, 1s, false));
}

}  // namespace
}  // namespace sightline::subscriber
