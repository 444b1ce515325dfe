// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/cluster/event_publisher.h"

#include <memory>

#include <asio/io_context.hpp>
#include <gtest/gtest.h>
#include <zmq.h>

#include "common/base/bytes.h"

namespace sightline::cluster {
namespace {

using core::AllBlocksCleared;
using Frames = std::vector<std::string>;

constexpr int kTimeoutMs = 5000;
const std::string kEnd(8, '\xff');

std::string sequence_frame(std::uint64_t sequence) {
  std::string frame(8, '\0');
  store_be64(reinterpret_cast<std::uint8_t*>(frame.data()), sequence);
  return frame;
}

// A libzmq socket of the test. It answers within kTimeoutMs or with nothing.
class Peer {
 public:
  explicit Peer(int type) : context_(zmq_ctx_new()), socket_(zmq_socket(context_, type)) {
    for (const int option : {ZMQ_RCVTIMEO, ZMQ_SNDTIMEO}) set(option, kTimeoutMs);
    set(ZMQ_LINGER, 0);
    set(ZMQ_RCVHWM, 0);
  }
  ~Peer() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void set(int option, int value) { zmq_setsockopt(socket_, option, &value, sizeof value); }
  void subscribe() { zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, "", 0); }
  void connect(std::uint16_t port) {
    const std::string endpoint = "tcp://127.0.0.1:" + std::to_string(port);
    ASSERT_EQ(zmq_connect(socket_, endpoint.c_str()), 0);
  }
  void send(const Frames& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const int flags = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
      ASSERT_GE(zmq_send(socket_, frames[i].data(), frames[i].size(), flags), 0);
    }
  }
  Frames receive() {
    Frames frames;
    int more = 1;
    while (more != 0) {
      zmq_msg_t message;
      zmq_msg_init(&message);
      if (zmq_msg_recv(&message, socket_, 0) < 0) return {};
      frames.emplace_back(static_cast<const char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
      more = zmq_msg_more(&message);
      zmq_msg_close(&message);
    }
    return frames;
  }

 private:
  void* context_;
  void* socket_;
};

std::unique_ptr<EventPublisher> publisher(int minor_version, std::uint32_t buffer_batches) {
  auto created = EventPublisher::create({.topic = "kv@127.0.0.1:1@m",
                                         .format = {.minor_version = minor_version},
                                         .buffer_batches = buffer_batches},
                                        system_clock());
  EXPECT_TRUE(created.ok());
  return std::move(created).value();
}

// All messages of a replay, with the end marker.
std::vector<Frames> replay(std::uint16_t port, const Frames& request) {
  Peer dealer(ZMQ_DEALER);
  dealer.connect(port);
  dealer.send(request);
  std::vector<Frames> answers;
  do {
    answers.push_back(dealer.receive());
  } while (!answers.back().empty() && answers.back()[answers.back().size() - 2] != kEnd);
  return answers;
}

TEST(EventPublisher, SendsTopicSequenceAndPayloadToASubscriber) {
  const auto engine = publisher(32, 10);
  Peer subscriber(ZMQ_SUB);
  subscriber.connect(engine->events_port());
  subscriber.subscribe();
  // A subscription takes effect some time later. Publish until the first message arrives.
  subscriber.set(ZMQ_RCVTIMEO, 20);
  Frames first;
  for (int i = 0; i < 250 && first.empty(); ++i) {
    engine->publish({AllBlocksCleared{}});
    first = subscriber.receive();
  }
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[0], "kv@127.0.0.1:1@m");
  EXPECT_NE(first[2].find("AllBlocksCleared"), std::string::npos);
  const auto all = replay(engine->replay_port(), {"", first[1]});
  EXPECT_EQ(all[0][2], first[1]);
  EXPECT_EQ(all[0][3], first[2]);
}

TEST(EventPublisher, ReplaysFromTheAskedSequenceInTheNewerFraming) {
  const auto engine = publisher(32, 10);
  for (int i = 0; i < 3; ++i) engine->publish({AllBlocksCleared{}});
  const auto answers = replay(engine->replay_port(), {"", sequence_frame(1)});
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].size(), 4U);
  EXPECT_EQ(answers[0][1], "kv@127.0.0.1:1@m");
  EXPECT_EQ(answers[0][2], sequence_frame(1));
  EXPECT_EQ(answers[1][2], sequence_frame(2));
  EXPECT_EQ(answers[2], (Frames{"", "", kEnd, ""}));
}

TEST(EventPublisher, TheReplayAfterACutOneIsComplete) {
  asio::io_context context;
  faults::FaultPlan plan(1, system_clock());
  ASSERT_TRUE(plan.add(*faults::parse_fault("kind=cut-replay,count=1")).ok());
  faults::EventFaults faults(context, plan, system_clock());
  const auto created = EventPublisher::create({.faults = &faults}, system_clock());
  ASSERT_TRUE(created.ok());
  const EventPublisher& engine = **created;
  for (int i = 0; i < 6; ++i) (*created)->publish({AllBlocksCleared{}});
  Peer dealer(ZMQ_DEALER);
  dealer.connect(engine.replay_port());
  // The same peer asks twice: the messages after the gap belong to the second answer.
  for (int i = 0; i < 2; ++i) dealer.send({"", sequence_frame(0)});
  std::vector<std::string> numbers;
  do {
    const Frames answer = dealer.receive();
    ASSERT_GE(answer.size(), 2U);
    numbers.push_back(answer[answer.size() - 2]);
  } while (numbers.back() != kEnd);
  std::vector<std::string> expected;
  for (const std::uint64_t number : {0, 1, 4, 5, 0, 1, 2, 3, 4, 5}) {
    expected.push_back(sequence_frame(number));
  }
  expected.push_back(kEnd);
  EXPECT_EQ(numbers, expected);
}

TEST(EventPublisher, LeavesTheTopicOutOfReplaysOfOlderReleases) {
  const auto engine = publisher(24, 10);
  engine->publish({AllBlocksCleared{}});
  const auto answers = replay(engine->replay_port(), {"", sequence_frame(0)});
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].size(), 3U);
  EXPECT_EQ(answers[0][1], sequence_frame(0));
  EXPECT_EQ(answers[1], (Frames{"", kEnd, ""}));
}

TEST(EventPublisher, AReplayBeginsAtTheOldestBufferedMessage) {
  const auto engine = publisher(32, 2);
  for (int i = 0; i < 5; ++i) engine->publish({AllBlocksCleared{}});
  const auto answers = replay(engine->replay_port(), {"", sequence_frame(0)});
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0][2], sequence_frame(3));
}

TEST(EventPublisher, AStartBeyondTheLastSequenceGetsTheEndAlone) {
  const auto engine = publisher(32, 10);
  engine->publish({AllBlocksCleared{}});
  EXPECT_EQ(replay(engine->replay_port(), {"", sequence_frame(7)}).size(), 1U);
  EXPECT_EQ(replay(engine->replay_port(), {"", std::string(12, '\x01')}).size(), 1U);
  EXPECT_EQ(replay(engine->replay_port(), {"", std::string(4, '\0')}).size(), 2U);
}

TEST(EventPublisher, AMalformedRequestGetsNoAnswerAndHarmsNoOther) {
  const auto engine = publisher(32, 10);
  engine->publish({AllBlocksCleared{}});
  Peer rude(ZMQ_DEALER);
  rude.set(ZMQ_RCVTIMEO, 100);
  rude.connect(engine->replay_port());
  rude.send({sequence_frame(0)});
  rude.send({"x", sequence_frame(0)});
  rude.send(Frames(100, "flood"));
  EXPECT_EQ(replay(engine->replay_port(), {"", sequence_frame(0)}).size(), 2U);
  EXPECT_TRUE(rude.receive().empty());
}

TEST(EventPublisher, ATakenPortIsAnErrorThatNamesIt) {
  const auto engine = publisher(32, 10);
  const auto second =
      EventPublisher::create({.events_port = engine->events_port()}, system_clock());
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find(std::to_string(engine->events_port())), std::string::npos);
}

}  // namespace
}  // namespace sightline::cluster
