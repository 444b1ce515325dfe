// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/rank_connection.h"

#include <algorithm>

#include "router/engine/vllm/vllm.h"
#include "tests/unit/router/cache/subscriber/publisher.h"

namespace sightline::subscriber {
namespace {

TEST(RankConnection, ATurnEndsAfterSomeMessagesOrSomeBytes) {
  struct Case {
    std::size_t payload_bytes;
    std::size_t messages_per_turn;
  };
  const ZmqContext context = open_context();
  const keys::Scheme scheme{contract::development_identity_key()};
  for (const auto& [payload_bytes, messages_per_turn] : {Case{1U << 20U, 4}, Case{1, 256}}) {
    index::ExactIndex index;
    index::IndexedCache sink(kEngine, index);
    ZmqPoller poller;
    Multipart message;
    ReplayPlaces places;
    const FollowOptions options;
    const RankConnection::Deps shared{.context = context.get(),
                                      .poller = poller,
                                      .message = message,
                                      .places = places,
                                      .clock = system_clock(),
                                      .options = options};
    Publisher publisher(context.get());
    const auto events = publisher.bind_events("inproc://" + std::to_string(payload_bytes));
    auto follower = RankConnection::open(
        shared, {.events = events},
        events::EventFeed({.id = kEngine, .format = &vllm::vllm(), .model = "m"}, {}, scheme,
                          sink));
    ASSERT_TRUE(follower.ok());
    publisher.await_subscriber();
    const std::size_t published = 3 * messages_per_turn;
    for (std::size_t i = 0; i < published; ++i) {
      publisher.publish(i, std::string(payload_bytes, 'x'));
    }
    std::size_t applied = 0;
    std::size_t most = 0;
    while (applied < published) {
      for (const auto token : poller.wait(std::chrono::milliseconds(kPatience).count())) {
        (*follower)->read(token);
        const auto now = (*follower)->status().stream.applied;
        most = std::max(most, now - applied);
        applied = now;
      }
    }
    EXPECT_EQ(most, messages_per_turn) << payload_bytes;
  }
}

}  // namespace
}  // namespace sightline::subscriber
