// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/event_subscriber.h"

#include <atomic>
#include <future>

#include <unistd.h>

#include "router/cache/operations/facts.h"
#include "router/engine/vllm/vllm.h"
#include "tests/unit/router/cache/subscriber/publisher.h"

namespace sightline::subscriber {
namespace {

using ZmqSubscriber = SubscriberTest;

TEST_F(ZmqSubscriber, FollowsAPublisherThatBinds) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  for (std::uint64_t i = 0; i < 3; ++i) publisher_.publish(i);
  await_sequence(2);
  EXPECT_EQ(index_.blocks(kEngine), 3U);
  EXPECT_EQ(status().facts.block_size, 1U);
  EXPECT_EQ(status().batch_timestamp_s, 1.0);
  EXPECT_GT(status().lag.count(), 0);
  EXPECT_EQ(status().stream.late_joins, 0U);
}

TEST_F(ZmqSubscriber, BindsForAPublisherThatConnects) {
  start();
  const auto path = testing::TempDir() + "sightline-events-" + std::to_string(getpid()) + ".sock";
  const auto endpoint = "ipc://" + path;
  follow({.events = endpoint, .bind = true});
  publisher_.connect_events(endpoint);
  publisher_.await_subscriber();
  publisher_.publish(0);
  await_sequence(0);
  EXPECT_EQ(index_.blocks(kEngine), 1U);
}

TEST_F(ZmqSubscriber, AsksForTheBeginningAndKeepsLiveMessagesMeanwhile) {
  start();
  const auto replay = publisher_.bind_replay();
  follow({.events = publisher_.bind_events(), .replay = replay});
  EXPECT_EQ(publisher_.await_replay_request(), 0U);
  publisher_.await_subscriber();
  await_connected();
  publisher_.publish(3);  // overtakes the answers below
  publisher_.publish(4);
  publisher_.answer(0);
  publisher_.answer(1);
  publisher_.answer(2);
  await_sequence(2);
  EXPECT_TRUE(status().replaying);
  publisher_.answer(3);
  publisher_.end_answers();
  await_sequence(4);
  EXPECT_EQ(index_.blocks(kEngine), 5U);
  EXPECT_FALSE(status().replaying);
  EXPECT_EQ(status().stream.duplicates, 1U);
  EXPECT_EQ(status().stream.gaps, 0U);
  EXPECT_EQ(status().stream.drops, 0U);
}

TEST_F(ZmqSubscriber, FillsAGapFromAnOldReplaySocketToo) {
  start();
  follow_replaying();
  publisher_.end_answers();
  publisher_.publish(0);
  await_sequence(0);
  publisher_.publish(3);
  EXPECT_EQ(publisher_.await_replay_request(), 0U);  // the last one applied, as proof
  for (std::uint64_t i = 0; i <= 3; ++i) publisher_.answer_old_form(i);
  publisher_.end_answers();
  await([&] { return status().facts.sequence == 3 && !status().replaying; });
  EXPECT_EQ(index_.blocks(kEngine), 4U);
  EXPECT_EQ(status().stream.gaps, 1U);
  EXPECT_EQ(status().stream.gaps_recovered, 1U);
  EXPECT_EQ(status().stream.drops, 0U);
}

TEST_F(ZmqSubscriber, MessageWithoutMemoryCausesARelearnByReplay) {
  start();
  follow_replaying();
  publisher_.end_answers();
  publisher_.publish(0);
  await_sequence(0);
  scarce_.fail_next();
  publisher_.publish(1);
  EXPECT_EQ(publisher_.await_replay_request(), 0U);
  EXPECT_EQ(index_.blocks(kEngine), 0U) << "what was half applied is not claimed";
  for (std::uint64_t i = 0; i <= 1; ++i) publisher_.answer(i);
  publisher_.end_replay(1);
  await([&] { return status().facts.sequence == 1 && !status().replaying; });
  EXPECT_EQ(index_.blocks(kEngine), 2U);
  EXPECT_EQ(status().stream.relearns, 1U);
}

TEST_F(ZmqSubscriber, WithoutAReplayAMessageWithoutMemoryIsKnownToBeMissing) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  publisher_.publish(0);
  await_sequence(0);
  scarce_.fail_next();
  publisher_.publish(1);
  await([&] { return status().stream.relearns == 1; });
  publisher_.publish(2);
  await_sequence(2);
  EXPECT_TRUE(status().facts.missing.forgotten);
  EXPECT_EQ(index_.blocks(kEngine), 0U) << "its parent is one of the forgotten";
}

TEST_F(ZmqSubscriber, NothingIsVerifiedWhileThereIsNoMemory) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  publisher_.publish(0);
  await([&] { return status().facts.health == operations::FeedHealth::Verified; });
  scarce_.fail_always(true);
  publisher_.publish(1);
  await([&] { return status().facts.health == operations::FeedHealth::Replaying; });
  scarce_.fail_always(false);
  publisher_.publish(2);
  await_sequence(2);
  await([&] { return status().facts.health == operations::FeedHealth::Verified; });
  EXPECT_TRUE(status().facts.missing.forgotten);
}

TEST_F(ZmqSubscriber, ContinuesLiveWithoutAnAnswerToTheReplay) {
  start(std::chrono::milliseconds(500));
  const auto replay = publisher_.bind_replay();
  follow({.events = publisher_.bind_events(), .replay = replay});
  publisher_.await_subscriber();
  await_connected();
  publisher_.publish(0);
  await_sequence(0);
  EXPECT_EQ(status().stream.replay_timeouts, 1U);
  publisher_.publish(1);
  await_sequence(1);
  EXPECT_EQ(index_.blocks(kEngine), 2U);
}

TEST_F(ZmqSubscriber, RestartsWithThePublisher) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  publisher_.publish(0);
  publisher_.publish(1);
  await_sequence(1);
  const auto restarted = pack::batch({pack::stored({7}, pack::nil(), {77})}, 2.0);
  publisher_.publish(0, {restarted.begin(), restarted.end()});
  await_sequence(0);
  EXPECT_EQ(index_.blocks(kEngine), 1U);
  EXPECT_EQ(status().stream.restarts, 1U);
}

TEST_F(ZmqSubscriber, ReportsTheEndOfABlockSizeConflict) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  publisher_.publish(0);
  const auto pair = pack::batch({pack::stored({7}, pack::nil(), {70, 71}, 2)}, 1.0);
  publisher_.publish(1, {pair.begin(), pair.end()});
  await([&] { return conflict_told() == 2U; });
  EXPECT_EQ(index_.blocks(kEngine), 0U);
  const auto restarted = pack::batch({pack::stored({7}, pack::nil(), {70, 71}, 2)}, 2.0);
  publisher_.publish(0, {restarted.begin(), restarted.end()});
  await([&] { return !conflict_told(); });
  EXPECT_EQ(index_.blocks(kEngine), 1U);
}

TEST_F(ZmqSubscriber, BrokenMessagesAreCountedAndTheConnectionGoesOn) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  publisher_.send_raw({"only one frame"});
  publisher_.send_raw(Frames(50, "x"));
  publisher_.send_raw({"topic", "short", payload_of(0)});
  publisher_.publish(0);
  publisher_.publish(1, "\xc1 not msgpack");
  publisher_.publish(2);
  await_sequence(2);
  EXPECT_EQ(status().undecodable_messages, 4U);
  // Message 1 may have contained a removal, so earlier blocks are not claimed any more. Message 2
  // waits for it.
  EXPECT_EQ(index_.blocks(kEngine), 0U);
  EXPECT_EQ(status().waiting_blocks, 1U);
}

TEST_F(ZmqSubscriber, AnOversizedFrameClosesTheConnectionWhichThenComesBack) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  publisher_.publish(0, std::string(1U << 20U, 'x'));
  publisher_.await_unsubscribed();
  publisher_.await_subscriber();
  publisher_.publish(0);
  await_sequence(0);
  EXPECT_EQ(status().undecodable_messages, 0U);
}

TEST_F(ZmqSubscriber, FollowsARestartedEngineBeforeItsFirstMessage) {
  start();
  auto first = std::make_unique<Publisher>();
  const auto events = first->bind_events();
  const auto replay = first->bind_replay();
  follow({.events = events, .replay = replay});
  first->await_replay_request();
  first->await_subscriber();
  await_connected();
  first->publish(0);
  first->publish(1);
  first->answer(0);
  await_sequence(1);
  EXPECT_EQ(index_.blocks(kEngine), 2U);
  first.reset();
  await([&] { return !is_connected(); });
  Publisher second;
  second.bind_events(events);
  second.bind_replay(replay.c_str());
  EXPECT_EQ(second.await_replay_request(), 1U);  // has the publisher its last message?
  second.end_answers();
  EXPECT_EQ(second.await_replay_request(), 0U);
  await([&] { return index_.blocks(kEngine) == 0; });
  second.answer(0);
  second.end_replay(0);
  await([&] { return status().facts.sequence == 0 && !status().replaying; });
  EXPECT_EQ(index_.blocks(kEngine), 1U);
}

TEST_F(ZmqSubscriber, RemovingAnEngineForgetsItsBlocks) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  publisher_.publish(0);
  await_sequence(0);
  EXPECT_EQ(subscriber_->statuses().size(), 1U);
  subscriber_->remove(kEngine);
  EXPECT_FALSE(subscriber_->status(kEngine).has_value());
  EXPECT_TRUE(subscriber_->statuses().empty());
  await([&] { return index_.blocks(kEngine) == 0; });
}

TEST_F(ZmqSubscriber, NoEngineCausesAWalkOverAllBlocks) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  publisher_.publish(0);
  await_sequence(0);
  subscriber_->relearn(kEngine, false);
  await([&] { return index_.blocks(kEngine) == 0; });
  publisher_.publish(0);  // a restart, in the subscriber's view
  publisher_.publish(1);
  await([&] { return index_.blocks(kEngine) == 2; });
  subscriber_->remove(kEngine);
  await([&] { return index_.blocks_total() == 0; });
  EXPECT_EQ(index_.walks(), 0);
}

TEST_F(ZmqSubscriber, MessagesThatWaitForAReplayAreForgottenWithTheirEngine) {
  start();
  follow_replaying();
  publisher_.publish(0);
  publisher_.answer(0);
  await_sequence(0);
  publisher_.publish(1);
  subscriber_->remove(kEngine);
  await([&] { return index_.blocks_total() == 0; });
  EXPECT_EQ(index_.walks(), 0);
}

TEST_F(ZmqSubscriber, ReportsTheLengthOfItsThreadsTurn) {
  std::promise<void> release;
  std::atomic<bool> is_held = false;
  const auto gate = release.get_future().share();
  options.on_change = [&](const events::FeedStatus& /*now*/) {
    if (!is_held.exchange(true)) gate.wait();
  };
  start_with_options();
  EXPECT_EQ(subscriber_->turn_age(), Duration::zero());
  follow({.events = publisher_.bind_events()});
  await([&] { return is_held && subscriber_->turn_age() > std::chrono::milliseconds(20); });
  release.set_value();
  await([&] { return subscriber_->turn_age() == Duration::zero(); });
}

TEST_F(ZmqSubscriber, ReportsFactsAfterTheOperationsTheyDependOn) {
  std::atomic<std::uint64_t> told_late = 0;
  std::atomic<std::uint64_t> epoch = 0;
  options.on_status = [&](const events::FeedStatus& now) {
    const std::uint64_t held = now.epoch == 0 && now.facts.sequence ? *now.facts.sequence + 1 : 0;
    if (index_.blocks(kEngine) != held) ++told_late;
    epoch = now.epoch;
  };
  start();
  follow_replaying();
  publisher_.answer(0);
  publisher_.end_replay(0);
  await_verified();
  publisher_.publish(1);
  await_sequence(1);
  EXPECT_EQ(index_.blocks_total(), 2U);
  EXPECT_EQ(epoch, 0U);
  subscriber_->relearn(kEngine, false);
  await([&] { return epoch == 1; });
  EXPECT_EQ(index_.blocks_total(), 0U);
  EXPECT_EQ(told_late, 0U);
}

TEST_F(ZmqSubscriber, RefusesEndpointsThatCannotBeUsed) {
  start();
  for (const FeedEndpoints& endpoints :
       {FeedEndpoints{.events = "nonsense"}, FeedEndpoints{.events = "tcp://127.0.0.1"},
        FeedEndpoints{.events = "tcp://a.name"}, FeedEndpoints{.events = "tcp://*:5557"},
        FeedEndpoints{.events = "tcp://127.0.0.1:5557", .replay = "nonsense"}}) {
    const auto told_before = refusals().size();
    follow(endpoints);
    await([&] { return refusals().size() > told_before; });
    const auto [cache, error] = refusals().back();
    EXPECT_EQ(cache, kEngine);
    EXPECT_EQ(error.code, ErrorCode::InvalidArgument);
    EXPECT_NE(error.message.find("endpoint cannot be used (Invalid argument): write it as"),
              std::string::npos)
        << error.message;
    EXPECT_FALSE(subscriber_->status(kEngine).has_value());
    subscriber_->remove(kEngine);
  }
  EXPECT_TRUE(changes().empty());
}

// Holds the subscriber's thread in the callback of the first change, until it is released.
class BusySubscriber : public SubscriberTest {
 protected:
  void start_busy() {
    options.on_refused = [this](CacheId cache, const Error& error) {
      const std::lock_guard lock(mutex_);
      refusals_.emplace_back(cache, error);
    };
    options.on_change = [this, gate = go_on_.get_future().share()](const events::FeedStatus&) {
      if (!is_held_.exchange(true)) gate.wait();
    };
    start_with_options();
    follow({.events = publisher_.bind_events()});
    await([&] { return is_held_.load(); });
  }
  void go_on() { go_on_.set_value(); }

  std::atomic<bool> is_held_ = false;
  std::promise<void> go_on_;
};

TEST_F(BusySubscriber, AddingAnEngineDoesNotWaitForTheThread) {
  start_busy();
  constexpr CacheId kAdded{9};
  subscriber_->add({.events = free_address()},
                   {.id = kAdded, .format = &vllm::vllm(), .model = "m"});
  ASSERT_TRUE(subscriber_->status(kAdded).has_value());
  EXPECT_EQ(subscriber_->status(kAdded)->facts.health, FeedHealth::Waiting);
  EXPECT_EQ(subscriber_->statuses().size(), 2U);
  go_on();
}

TEST_F(BusySubscriber, EngineRemovedBeforeItsTurnIsIgnored) {
  start_busy();
  Publisher other;
  constexpr CacheId kGood{9};
  constexpr CacheId kBad{10};
  constexpr CacheId kLast{11};
  subscriber_->add({.events = other.bind_events()},
                   {.id = kGood, .format = &vllm::vllm(), .model = "m"});
  subscriber_->add({.events = "nonsense"}, {.id = kBad, .format = &vllm::vllm(), .model = "m"});
  subscriber_->remove(kGood);
  subscriber_->remove(kBad);
  subscriber_->add({.events = "nonsense"}, {.id = kLast, .format = &vllm::vllm(), .model = "m"});
  EXPECT_FALSE(subscriber_->status(kGood).has_value());
  go_on();
  await([&] { return !refusals().empty(); });
  EXPECT_EQ(refusals().size(), 1U);
  EXPECT_EQ(refusals()[0].first, kLast);
  EXPECT_FALSE(subscriber_->status(kGood).has_value());
}

TEST_F(ZmqSubscriber, ReportsABusyAddressAndBindsItOnceFree) {
  start();
  auto other = std::make_unique<Publisher>();
  const auto address = other->bind_events();
  follow({.events = address, .bind = true});
  await([&] { return changes() == std::vector{FeedHealth::AddressInUse}; });
  other.reset();
  publisher_.connect_events(address);
  await_verified();
  publisher_.await_subscriber();
  publisher_.publish(0);
  await_sequence(0);
}

TEST_F(ZmqSubscriber, ReAddedEngineIsFollowedAtTheSameAddress) {
  start();
  const auto address = free_address();
  follow({.events = address, .bind = true});
  publisher_.connect_events(address);
  publisher_.await_subscriber();
  // libzmq frees an address some time after its socket is closed: one of these meets it in use.
  CacheId cache = kEngine;
  for (int i = 0; i < 20; ++i) {
    subscriber_->remove(cache);
    ++cache.value;
    subscriber_->add({.events = address, .bind = true},
                     {.id = cache, .format = &vllm::vllm(), .model = "m"});
  }
  await([&] { return subscriber_->status(cache)->facts.health == FeedHealth::Verified; });
}

TEST_F(ZmqSubscriber, EventsOfAnotherRankDoNotVerifyTheEngine) {
  start();
  const auto address = publisher_.bind_events();
  subscriber_->add({.events = address},
                   {.id = kEngine, .format = &vllm::vllm(), .model = "m", .rank = 1});
  publisher_.await_subscriber();
  publisher_.publish(0);  // of rank 0
  // The callback comes after the status has changed.
  await([&] { return !changes().empty() && changes().back() == FeedHealth::OtherRank; });
  EXPECT_EQ(status().facts.health, FeedHealth::OtherRank);
  EXPECT_EQ(status().other_rank_messages, 1U);
  EXPECT_EQ(index_.blocks(kEngine), 0U);
}

TEST_F(ZmqSubscriber, EndsWhileAReplayIsStillOpen) {
  start();
  const auto replay = publisher_.bind_replay();
  follow({.events = publisher_.bind_events(), .replay = replay});
  publisher_.await_replay_request();
  subscriber_.reset();
}

double seconds_of(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

TEST_F(ZmqSubscriber, LookReportsWhetherAllEventsAreApplied) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  await_verified();
  publisher_.time_s = 1;  // long ago, so each message seems to have waited
  publisher_.publish(0);
  publisher_.publish(1);
  await_sequence(1);
  const Instant asked = system_clock().now();
  await([&] {
    subscriber_->look(kEngine);
    return status().facts.caught_up >= asked;
  });
  subscriber_->look(CacheId{99});  // unknown: no effect
}

TEST_F(ZmqSubscriber, BusyEngineIsCaughtUpWhileMessagesArePrompt) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  await_verified();
  const Instant begun = system_clock().now();
  std::uint64_t sequence = 0;
  await([&] {
    publisher_.time_s = seconds_of(system_clock().wall());
    publisher_.publish(sequence++);
    await_sequence(sequence - 1);
    return status().facts.caught_up >= begun + std::chrono::milliseconds(50);
  });
}

TEST_F(ZmqSubscriber, AnEngineThatIsReplayedIsNotCaughtUp) {
  start();
  follow_replaying();
  publisher_.end_answers();
  publisher_.publish(0);
  await_sequence(0);
  await([&] {
    subscriber_->look(kEngine);
    return status().facts.caught_up.has_value();
  });
  subscriber_->relearn(kEngine, true);
  publisher_.await_replay_request();
  subscriber_->look(kEngine);
  EXPECT_EQ(status().facts.caught_up, std::nullopt);
  publisher_.answer(0);
  publisher_.end_replay(0);
  await([&] {
    subscriber_->look(kEngine);
    return status().facts.caught_up.has_value();
  });
}

}  // namespace
}  // namespace sightline::subscriber
