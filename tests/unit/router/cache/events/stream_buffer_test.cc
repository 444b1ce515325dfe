// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// How an event stream treats live messages without room while a replay runs.
#include <gtest/gtest.h>

#include "router/cache/events/stream.h"

namespace sightline::events {
namespace {

using Sequences = std::vector<std::uint64_t>;

EventMessage message(std::uint64_t sequence) {
  return {.sequence = sequence, .payload = {0, static_cast<std::uint8_t>(sequence), 1}};
}

Sequences applied(const StreamStep& step) {
  Sequences sequences;
  for (const auto& item : step.apply) sequences.push_back(item.sequence);
  return sequences;
}

TEST(StreamBuffer, IsBoundedInMessagesAndBytes) {
  auto by_count = EventStream({.replay_available = true, .buffered_messages_max = 2});
  auto by_bytes = EventStream({.replay_available = true, .buffered_bytes_max = 6});
  for (auto* stream : {&by_count, &by_bytes}) {
    stream->start();
    for (std::uint64_t i = 0; i < 4; ++i) stream->live(message(i));
    EXPECT_EQ(stream->statistics().buffer_overflows, 2U);
    // The stream requests the dropped messages immediately, because the next message may come hours
    // later.
    const auto end = stream->replay_ended(false);
    EXPECT_EQ(applied(end), (Sequences{0, 1}));
    EXPECT_EQ(end.replay_from, 1U);
    EXPECT_TRUE(stream->replaying());
    stream->live(message(4));
    for (std::uint64_t i = 1; i < 4; ++i) stream->replayed(message(i));
    const auto caught_up = stream->replay_ended(false);
    EXPECT_EQ(applied(caught_up), Sequences{4});
    EXPECT_FALSE(caught_up.replay_from.has_value());
    EXPECT_EQ(stream->statistics().drops, 0U);
  }
}

TEST(StreamBuffer, WhatItDroppedAndNoReplayBringsDropsTheState) {
  auto stream = EventStream({.replay_available = true, .buffered_messages_max = 1});
  stream.start();
  stream.live(message(0));
  stream.live(message(1));
  EXPECT_EQ(stream.replay_ended(false).replay_from, 0U);
  StreamStep step;
  for (int asked = 0; stream.replaying() && asked < 100; ++asked) step = stream.replay_ended(true);
  EXPECT_TRUE(step.drop);
}

TEST(StreamBuffer, RelearnWithoutReplayStillRequestsDroppedMessages) {
  auto stream = EventStream({.replay_available = true, .buffered_messages_max = 1});
  stream.start();
  stream.live(message(0));
  stream.live(message(1));
  const auto step = stream.relearn(false);
  EXPECT_EQ(applied(step), Sequences{0});
  EXPECT_EQ(step.replay_from, 0U);
}

// A publisher, always faster than the buffer.
TEST(StreamBuffer, OneThatNeverSufficesIsNotAskedForEver) {
  ByteBudget budget(2);
  auto stream = EventStream({.replay_available = true, .held = &budget});
  stream.start();
  stream.replayed(message(0));
  int asked = 0;
  StreamStep step;
  do {
    stream.live(message(1));
    step = stream.replay_ended(false);
    stream.replayed(message(0));
  } while (step.replay_from && ++asked < 100);
  EXPECT_LT(asked, 10);
  EXPECT_TRUE(step.drop);
}

TEST(StreamBuffer, IsFullBeforeAnythingIsDropped) {
  auto stream = EventStream({.replay_available = true, .buffered_messages_max = 2});
  stream.start();
  stream.live(message(5));
  EXPECT_TRUE(stream.wants_live());
  stream.live(message(6));
  EXPECT_FALSE(stream.wants_live());
  for (std::uint64_t i = 0; i < 6; ++i) stream.replayed(message(i));
  EXPECT_TRUE(stream.wants_live()) << "the replay has met them";
  EXPECT_EQ(stream.statistics().buffer_overflows, 0U);
}

TEST(StreamBuffer, KeepsOneMessageOfAnySize) {
  auto stream = EventStream({.replay_available = true, .buffered_bytes_max = 1});
  stream.start();
  stream.live(message(1));
  EXPECT_FALSE(stream.wants_live());
  EXPECT_EQ(applied(stream.replayed(message(0))), Sequences{0});
  EXPECT_EQ(applied(stream.replay_ended(false)), Sequences{1});
}

TEST(StreamBuffer, WhatAllStreamsHoldIsBounded) {
  ByteBudget budget(7);
  const StreamOptions options{.replay_available = true, .held = &budget};
  EventStream one(options);
  {
    EventStream other(options);
    one.start();
    other.start();
    EXPECT_FALSE(one.wants_live()) << "little is left";
    one.live(message(5));
    other.live(message(5));
    EXPECT_EQ(budget.held(), 6U);
    other.live(message(6));
    EXPECT_EQ(other.statistics().buffer_overflows, 1U);
    one.lost();
    EXPECT_EQ(budget.held(), 3U);
  }
  EXPECT_EQ(budget.held(), 0U);
}

TEST(StreamBuffer, RequestsMessagesAgainThatExceedTheSharedLimit) {
  ByteBudget budget(2);
  auto stream = EventStream({.replay_available = true, .held = &budget});
  stream.start();
  stream.live(message(1));
  stream.replayed(message(0));
  EXPECT_EQ(stream.replay_ended(false).replay_from, 0U);
  stream.replayed(message(0));
  EXPECT_EQ(applied(stream.replayed(message(1))), Sequences{1});
  EXPECT_EQ(stream.replay_ended(false).replay_from, 1U);
  stream.replayed(message(1));
  EXPECT_FALSE(stream.replay_ended(false).replay_from.has_value());
  EXPECT_EQ(stream.statistics().drops, 0U);
}

}  // namespace
}  // namespace sightline::events
