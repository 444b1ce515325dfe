// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// The subscriber against real sockets of a publisher in the same process.
#include "router/subscriber/zmq_subscriber.h"

#include <functional>
#include <memory>

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/check.h"

#include "router/events/stream.h"
#include "router/index/exact_index.h"
#include "tests/support/pack.h"

namespace sightline::subscriber {
namespace {

namespace pack = events::pack;
using events::EngineHealth;

constexpr EngineId kEngine{4};
constexpr std::chrono::seconds kPatience{20};

using Frames = std::vector<std::string>;

std::string sequence_frame(std::uint64_t sequence) {
  const auto bytes = events::replay_start(sequence);
  return {bytes.begin(), bytes.end()};
}

// Message `sequence` of a publisher's life: stores one block of the chain 1 2 3 …
std::string payload_of(std::uint64_t sequence) {
  const auto parent = sequence == 0 ? pack::nil() : pack::integer(100 + sequence - 1);
  const auto bytes = pack::batch({pack::stored({100 + sequence}, parent, {sequence})}, 1.0);
  return {bytes.begin(), bytes.end()};
}

// Sockets of one publisher: PUB as engines have it, and the replay ROUTER.
class Publisher {
 public:
  Publisher() : context_(zmq_ctx_new()), events_(zmq_socket(context_, ZMQ_XPUB)) {
    const int no_linger = 0;
    zmq_setsockopt(events_, ZMQ_LINGER, &no_linger, sizeof no_linger);
  }
  ~Publisher() {
    zmq_close(events_);
    if (replay_ != nullptr) zmq_close(replay_);
    zmq_ctx_term(context_);
  }
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  std::string bind_events(const char* endpoint = "tcp://127.0.0.1:*") {
    return bind(events_, endpoint);
  }
  void connect_events(const std::string& endpoint) {
    SL_CHECK(zmq_connect(events_, endpoint.c_str()) == 0);
  }
  std::string bind_replay(const char* endpoint = "tcp://127.0.0.1:*") {
    replay_ = zmq_socket(context_, ZMQ_ROUTER);
    const int no_linger = 0;
    zmq_setsockopt(replay_, ZMQ_LINGER, &no_linger, sizeof no_linger);
    return bind(replay_, endpoint);
  }

  // A subscription arrives as a message of one byte 1 on an XPUB socket.
  void await_subscriber() { EXPECT_EQ(receive(events_), Frames{"\x01"}); }

  void await_unsubscribed() { EXPECT_EQ(receive(events_), Frames{std::string(1, '\0')}); }

  void publish(std::uint64_t sequence) { publish(sequence, payload_of(sequence)); }
  void publish(std::uint64_t sequence, const std::string& payload) {
    send(events_, {"topic", sequence_frame(sequence), payload});
  }
  void send_raw(const Frames& frames) { send(events_, frames); }

  // Waits for a request and returns its start; the answers below go to the asker.
  std::uint64_t await_replay_request() {
    const auto request = receive(replay_);
    SL_CHECK(request.size() == 3 && request[1].empty() && request[2].size() == 8);
    asker_ = request[0];
    return load_be64(bytes_of(request[2]).data());
  }
  void answer(std::uint64_t sequence) {
    send(replay_, {asker_, "", "topic", sequence_frame(sequence), payload_of(sequence)});
  }
  void answer_old_form(std::uint64_t sequence) {
    send(replay_, {asker_, "", sequence_frame(sequence), payload_of(sequence)});
  }
  void end_answers() { send(replay_, {asker_, "", "", std::string(8, '\xff'), ""}); }

 private:
  static std::string bind(void* socket, const char* endpoint) {
    SL_CHECK(zmq_bind(socket, endpoint) == 0);
    char bound[256] = {};
    std::size_t size = sizeof bound;
    SL_CHECK(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, bound, &size) == 0);
    return bound;
  }
  static void send(void* socket, const Frames& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const int more = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
      SL_CHECK(zmq_send(socket, frames[i].data(), frames[i].size(), more) >= 0);
    }
  }
  static Frames receive(void* socket) {
    zmq_pollitem_t item{.socket = socket, .fd = 0, .events = ZMQ_POLLIN, .revents = 0};
    SL_CHECK(zmq_poll(&item, 1, std::chrono::milliseconds(kPatience).count()) == 1);
    Frames frames;
    for (int more = 1; more != 0;) {
      zmq_msg_t part;
      zmq_msg_init(&part);
      SL_CHECK(zmq_msg_recv(&part, socket, 0) >= 0);
      frames.emplace_back(static_cast<const char*>(zmq_msg_data(&part)), zmq_msg_size(&part));
      more = zmq_msg_more(&part);
      zmq_msg_close(&part);
    }
    return frames;
  }

  void* context_;
  void* events_;
  void* replay_ = nullptr;
  std::string asker_;
};

class ZmqSubscriber : public testing::Test {
 protected:
  void start(std::chrono::milliseconds replay_timeout = kPatience) {
    SubscriberOptions options;
    options.replay_timeout = replay_timeout;
    options.frame_bytes_max = 1U << 16U;
    auto created = EventSubscriber::create(options, scheme_, index_, system_clock());
    ASSERT_TRUE(created.ok());
    subscriber_ = std::move(*created);
  }

  void follow(const EngineEndpoints& endpoints) {
    const auto added = subscriber_->add(endpoints, {.engine = kEngine, .model = "m"});
    ASSERT_TRUE(added.ok()) << added.error().message;
  }

  [[nodiscard]] bool is_connected() const {
    const auto health = status().health;
    return health == EngineHealth::Replaying || health == EngineHealth::Verified;
  }
  [[nodiscard]] events::EngineStatus status() const {
    return subscriber_->status(kEngine).value_or(events::EngineStatus{});
  }

  // Looks until the condition holds; the sockets' threads have no event to wait for.
  static void await(const std::function<bool()>& condition) {
    const auto deadline = system_clock().now() + kPatience;
    while (!condition()) {
      ASSERT_LT(system_clock().now(), deadline);
      poll(nullptr, 0, 1);
    }
  }
  // The first connection asks for nothing only while the first replay still runs: answer that one
  // after this.
  void await_connected() {
    await([&] { return is_connected(); });
  }
  void await_sequence(std::uint64_t sequence) {
    await([&] { return status().sequence == sequence; });
  }

  keys::Scheme scheme_{contract::development_identity_key()};
  index::ExactIndex index_;
  Publisher publisher_;
  std::unique_ptr<EventSubscriber> subscriber_;
};

TEST_F(ZmqSubscriber, FollowsAPublisherThatBinds) {
  start();
  follow({.events = publisher_.bind_events()});
  publisher_.await_subscriber();
  for (std::uint64_t i = 0; i < 3; ++i) publisher_.publish(i);
  await_sequence(2);
  EXPECT_EQ(index_.blocks(kEngine), 3U);
  EXPECT_EQ(status().block_size, 1U);
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

TEST_F(ZmqSubscriber, AsksForTheBeginningAtOnceAndKeepsLiveMessagesMeanwhile) {
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
  publisher_.answer(3);
  await_sequence(3);
  EXPECT_TRUE(status().replaying);
  publisher_.end_answers();
  await_sequence(4);
  EXPECT_EQ(index_.blocks(kEngine), 5U);
  EXPECT_FALSE(status().replaying);
  EXPECT_EQ(status().stream.duplicates, 1U);
  EXPECT_EQ(status().stream.gaps, 0U);
  EXPECT_EQ(status().stream.drops, 0U);
}

TEST_F(ZmqSubscriber, FillsAGapFromTheReplaySocketInTheOldFormToo) {
  start();
  const auto replay = publisher_.bind_replay();
  follow({.events = publisher_.bind_events(), .replay = replay});
  publisher_.await_replay_request();
  publisher_.await_subscriber();
  await_connected();
  publisher_.end_answers();
  publisher_.publish(0);
  await_sequence(0);
  publisher_.publish(3);
  EXPECT_EQ(publisher_.await_replay_request(), 0U);  // the last one applied, as proof
  for (std::uint64_t i = 0; i <= 3; ++i) publisher_.answer_old_form(i);
  publisher_.end_answers();
  await([&] { return status().sequence == 3 && !status().replaying; });
  EXPECT_EQ(index_.blocks(kEngine), 4U);
  EXPECT_EQ(status().stream.gaps, 1U);
  EXPECT_EQ(status().stream.gaps_recovered, 1U);
  EXPECT_EQ(status().stream.drops, 0U);
}

TEST_F(ZmqSubscriber, GoesOnLiveWhenNobodyAnswersTheReplay) {
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

TEST_F(ZmqSubscriber, StartsAnewWhenThePublisherDoes) {
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
  // Message 1 may have held a removal, so what came before is not claimed any more, and message
  // 2 hangs on it.
  EXPECT_EQ(index_.blocks(kEngine), 0U);
  EXPECT_EQ(status().normaliser.unknown_parent, 1U);
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

TEST_F(ZmqSubscriber, AnEngineThatRestartsIsFollowedAnewBeforeItsFirstMessage) {
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
  first->end_answers();
  await_sequence(1);
  EXPECT_EQ(index_.blocks(kEngine), 2U);
  first.reset();
  await([&] { return !is_connected(); });
  Publisher second;
  second.bind_events(events.c_str());
  second.bind_replay(replay.c_str());
  EXPECT_EQ(second.await_replay_request(), 1U);  // do you know my last message?
  second.end_answers();
  EXPECT_EQ(second.await_replay_request(), 0U);
  await([&] { return index_.blocks(kEngine) == 0; });
  second.answer(0);
  second.end_answers();
  await([&] { return status().sequence == 0 && !status().replaying; });
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

TEST_F(ZmqSubscriber, RefusesEndpointsThatCannotBeUsed) {
  start();
  const auto taken = publisher_.bind_events();
  for (const EngineEndpoints& endpoints :
       {EngineEndpoints{.events = "nonsense"}, EngineEndpoints{.events = "tcp://127.0.0.1"},
        EngineEndpoints{.events = taken, .bind = true},
        EngineEndpoints{.events = "tcp://127.0.0.1:5557", .replay = "nonsense"}}) {
    const auto added = subscriber_->add(endpoints, {.engine = kEngine, .model = "m"});
    ASSERT_FALSE(added.ok());
    EXPECT_EQ(added.error().code, ErrorCode::InvalidArgument);
    EXPECT_NE(added.error().message.find("endpoint cannot be used"), std::string::npos);
    EXPECT_FALSE(subscriber_->status(kEngine).has_value());
  }
}

TEST_F(ZmqSubscriber, EndsWhileAReplayIsStillOpen) {
  start();
  const auto replay = publisher_.bind_replay();
  follow({.events = publisher_.bind_events(), .replay = replay});
  publisher_.await_replay_request();
  subscriber_.reset();
}

}  // namespace
}  // namespace sightline::subscriber
