// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <zmq.h>

#include "common/base/check.h"

#include "router/cache/events/stream.h"
#include "router/cache/index/exact_index.h"
#include "router/cache/index/indexed_cache.h"
#include "router/cache/subscriber/event_subscriber.h"
#include "router/engine/vllm/vllm.h"
#include "tests/support/pack.h"
#include "tests/support/scarce_index.h"

// The subscriber against real sockets of a publisher in the same process.
namespace sightline::subscriber {

using operations::FeedHealth;

inline constexpr CacheId kEngine{4};
inline constexpr std::chrono::seconds kPatience{120};

using Frames = std::vector<std::string>;

inline std::string sequence_frame(std::uint64_t sequence) {
  const auto bytes = events::replay_start(sequence);
  return {bytes.begin(), bytes.end()};
}

// Message `sequence` of a publisher's life: stores one block of the chain 1 2 3 …
inline std::string payload_of(std::uint64_t sequence, double time_s = 1.0) {
  const auto parent = sequence == 0 ? pack::nil() : pack::integer(100 + sequence - 1);
  const auto bytes = pack::batch({pack::stored({100 + sequence}, parent, {sequence})}, time_s);
  return {bytes.begin(), bytes.end()};
}

// Sockets of one publisher: PUB as engines have it, and the replay ROUTER.
class Publisher {
 public:
  Publisher() : Publisher(zmq_ctx_new()) { owned_.reset(context_); }
  // In a subscriber's context, for inproc endpoints: messages arrive immediately.
  explicit Publisher(void* context) : context_(context), events_(zmq_socket(context, ZMQ_XPUB)) {
    const int no_linger = 0;
    zmq_setsockopt(events_, ZMQ_LINGER, &no_linger, sizeof no_linger);
  }
  ~Publisher() {
    zmq_close(events_);
    if (replay_ != nullptr) zmq_close(replay_);
  }
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  std::string bind_events(const std::string& endpoint = "tcp://127.0.0.1:*") {
    return bind(events_, endpoint.c_str());
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

  void publish(std::uint64_t sequence) { publish(sequence, payload_of(sequence, time_s)); }
  void publish(std::uint64_t sequence, const std::string& payload) {
    send(events_, {"topic", sequence_frame(sequence), payload});
  }
  void send_raw(const Frames& frames) { send(events_, frames); }

  // Waits for a request and returns its start. The answers below go to its sender.
  std::uint64_t await_replay_request() {
    const auto request = receive(replay_);
    SL_CHECK(request.size() == 3 && request[1].empty() && request[2].size() == 8);
    asker_ = request[0];
    return load_be64(bytes_of(request[2]).data());
  }
  void answer(std::uint64_t sequence) {
    send(replay_, {asker_, "", "topic", sequence_frame(sequence), payload_of(sequence, time_s)});
  }
  void answer_old_form(std::uint64_t sequence) {
    send(replay_, {asker_, "", sequence_frame(sequence), payload_of(sequence, time_s)});
  }
  void end_answers() { send(replay_, {asker_, "", "", std::string(8, '\xff'), ""}); }
  // Ends a replay that brought new messages, and the next one, which brings no more.
  void end_replay(std::uint64_t last) {
    end_answers();
    EXPECT_EQ(await_replay_request(), last);
    answer(last);
    end_answers();
  }

  double time_s = 1.0;  // of its messages. Another life has another time

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

  ZmqContext owned_;
  void* context_;
  void* events_;
  void* replay_ = nullptr;
  std::string asker_;
};

// An address at which no process listens.
inline std::string free_address() {
  Publisher publisher;
  return publisher.bind_events();
}

// Counts the walks over the blocks of all engines.
class WalkCountingIndex : public index::ExactIndex {
 public:
  void apply(CacheId cache, const operations::Operation& operation) override {
    const auto* clear = std::get_if<operations::Clear>(&operation);
    if (clear != nullptr && !clear->held && blocks(cache) > 0) ++walks_;
    ExactIndex::apply(cache, operation);
  }
  [[nodiscard]] int walks() const { return walks_; }

 private:
  std::atomic<int> walks_ = 0;
};

class SubscriberTest : public testing::Test {
 protected:
  void start(std::chrono::milliseconds replay_timeout = kPatience) {
    options.follow.replay_timeout = replay_timeout;
    options.follow.frame_bytes_max = 1U << 16U;
    options.on_change = [this](const events::FeedStatus& now) {
      const std::lock_guard lock(mutex_);
      // A block size in events is a change too.
      if (changes_.empty() || changes_.back() != now.facts.health)
        changes_.push_back(now.facts.health);
      conflict_told_ = now.facts.block_size_conflict;
    };
    options.on_refused = [this](CacheId cache, const Error& error) {
      const std::lock_guard lock(mutex_);
      refusals_.emplace_back(cache, error);
    };
    start_with_options();
  }
  void start_with_options() {
    const auto sinks = [this](CacheId cache) {
      return std::make_unique<index::IndexedCache>(cache, scarce_);
    };
    auto created = EventSubscriber::create(options, scheme_, sinks, system_clock());
    ASSERT_TRUE(created.ok());
    subscriber_ = std::move(*created);
  }

  void follow(const FeedEndpoints& endpoints) {
    subscriber_->add(endpoints, {.id = kEngine, .format = &vllm::vllm(), .model = "m"});
  }

  // With a replay that has been asked for and not answered.
  void follow_replaying() {
    const auto replay = publisher_.bind_replay();
    follow({.events = publisher_.bind_events(), .replay = replay});
    publisher_.await_replay_request();
    publisher_.await_subscriber();
    await_connected();
  }

  // Until the sockets of the engines added so far are open: engines take their turns in order.
  void await_opened() {
    subscriber_->add({.events = "nonsense"},
                     {.id = CacheId{1'000'000}, .format = &vllm::vllm(), .model = "m"});
    await([&] { return !refusals().empty(); });
  }

  [[nodiscard]] bool is_connected() const {
    const auto health = status().facts.health;
    return health == FeedHealth::Replaying || health == FeedHealth::Verified;
  }
  [[nodiscard]] events::FeedStatus status() const {
    return subscriber_->status(kEngine).value_or(events::FeedStatus{});
  }

  // Polls until the condition holds, because the sockets' threads have no event to wait for.
  static void await(const std::function<bool()>& condition) {
    const auto deadline = system_clock().now() + kPatience;
    while (!condition()) {
      ASSERT_LT(system_clock().now(), deadline);
      poll(nullptr, 0, 1);
    }
  }
  // The first connection requests nothing only while the first replay still runs. Answer that one
  // afterwards.
  void await_connected() {
    await([&] { return is_connected(); });
  }
  void await_sequence(std::uint64_t sequence) {
    await([&] { return status().facts.sequence == sequence; });
  }

  // The healths of the engine, in the order of the callbacks.
  [[nodiscard]] std::vector<FeedHealth> changes() const {
    const std::lock_guard lock(mutex_);
    return changes_;
  }
  [[nodiscard]] std::optional<std::uint32_t> conflict_told() const {
    const std::lock_guard lock(mutex_);
    return conflict_told_;
  }
  [[nodiscard]] std::vector<std::pair<CacheId, Error>> refusals() const {
    const std::lock_guard lock(mutex_);
    return refusals_;
  }
  void await_verified() {
    await([&] { return status().facts.health == FeedHealth::Verified; });
  }

  SubscriberOptions options;
  keys::Scheme scheme_{contract::development_identity_key()};
  WalkCountingIndex index_;
  test::ScarceIndex scarce_{index_};
  Publisher publisher_;
  mutable std::mutex mutex_;  // guards the next three
  std::vector<std::pair<CacheId, Error>> refusals_;
  std::vector<FeedHealth> changes_;
  std::optional<std::uint32_t> conflict_told_;
  std::unique_ptr<EventSubscriber> subscriber_;
};

}  // namespace sightline::subscriber
