// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Replays of which the publisher's socket has dropped a part: their unbroken beginning counts.
#include <deque>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "router/cache/events/stream.h"

namespace sightline::events {
namespace {

using Sequences = std::vector<std::uint64_t>;

EventMessage message(std::uint64_t sequence) {
  return {.sequence = sequence,
          .payload = {static_cast<std::uint8_t>(sequence), static_cast<std::uint8_t>(sequence >> 8),
                      1}};
}

Sequences applied(const StreamStep& step) {
  Sequences sequences;
  for (const auto& item : step.apply) sequences.push_back(item.sequence);
  return sequences;
}

EventStream joining() {
  EventStream stream({.replay_available = true});
  EXPECT_EQ(stream.start().replay_from, 0U);
  return stream;
}

TEST(CutReplay, ItsUnbrokenPartIsKeptAndTheRestAskedFor) {
  auto stream = joining();
  stream.replayed(message(0));
  stream.replayed(message(1));
  const auto hole = stream.replayed(message(5));
  EXPECT_FALSE(hole.drop);
  EXPECT_TRUE(hole.apply.empty());
  EXPECT_EQ(hole.replay_from, 1U);
  EXPECT_EQ(stream.last_sequence(), 1U);
  EXPECT_EQ(stream.statistics().replays_cut, 1U);
  EXPECT_TRUE(stream.replaying());
}

TEST(CutReplay, OneWithoutItsEndIsGoneOnWith) {
  auto stream = joining();
  stream.replayed(message(0));
  stream.replayed(message(1));
  const auto silence = stream.replay_ended(true);
  EXPECT_FALSE(silence.drop);
  EXPECT_EQ(silence.replay_from, 1U);
  EXPECT_EQ(stream.statistics().replays_cut, 1U);
  EXPECT_EQ(stream.statistics().replay_timeouts, 0U);
  stream.replayed(message(1));
  EXPECT_EQ(applied(stream.replayed(message(2))), Sequences{2});
}

// The marker may have found room where messages before it had not.
TEST(CutReplay, EndAfterNewMessagesIsNotFinal) {
  auto stream = joining();
  stream.replayed(message(0));
  EXPECT_EQ(stream.replay_ended(false).replay_from, 0U);
  EXPECT_TRUE(stream.replaying());
  stream.replayed(message(0));
  EXPECT_FALSE(stream.replay_ended(false).replay_from.has_value());
  EXPECT_FALSE(stream.replaying());
}

TEST(CutReplay, AcceptsAnyNumberThatBringNewMessages) {
  auto stream = joining();
  for (std::uint64_t i = 0; i < 100; ++i) {
    if (i > 0) stream.replayed(message(i - 1));
    EXPECT_EQ(applied(stream.replayed(message(i))), Sequences{i});
    EXPECT_EQ(stream.replay_ended(true).replay_from, i);
  }
  EXPECT_EQ(stream.statistics().drops, 0U);
}

TEST(CutReplay, WhatHasLeftThePublishersBufferMeanwhileIsABeginning) {
  auto stream = joining();
  stream.replayed(message(0));
  EXPECT_EQ(stream.replay_ended(true).replay_from, 0U);
  const auto step = stream.replayed(message(7));
  EXPECT_TRUE(step.drop);
  EXPECT_EQ(applied(step), Sequences{7});
  EXPECT_FALSE(step.replay_from.has_value());
  EXPECT_EQ(stream.statistics().late_joins, 1U);
}

TEST(CutReplay, SilenceIsAskedAgainAndThenGoneOnWithout) {
  auto stream = joining();
  int asked = 1;
  while (stream.replay_ended(true).replay_from && asked < 100) ++asked;
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(stream.replay_silent());
  EXPECT_EQ(applied(stream.live(message(3))), Sequences{3});
  EXPECT_EQ(stream.live(message(5)).replay_from, 3U) << "it may answer by now";
  EXPECT_EQ(applied(stream.replay_ended(true)), Sequences{5}) << "but is waited for once";
  EXPECT_EQ(stream.live(message(7)).replay_from, 5U);
  stream.replayed(message(5));
  EXPECT_FALSE(stream.replay_silent());
}

// vLLM's publisher. It sends a replay in one go. What exceeds the room of its socket is dropped,
// and room returns as the reader reads.
class Publisher {
 public:
  explicit Publisher(std::uint64_t seed) : rng_(seed) {}

  void publish() { ++next_; }
  [[nodiscard]] std::uint64_t next() const { return next_; }

  // False in the second: silence at the end.
  std::pair<Sequences, bool> replay(std::uint64_t from) {
    Sequences sent;
    std::uint64_t room = 1 + rng_.below(30);
    const auto send = [&] {
      if (rng_.below(40) == 0) room += rng_.below(20);
      return room > 0 && room-- > 0;
    };
    for (auto i = from; i < next_; ++i) {
      if (send() || i == from) sent.push_back(i);
    }
    return {sent, send()};
  }
  std::uint64_t below(std::uint32_t bound) { return rng_.below(bound); }

 private:
  Rng rng_;
  std::uint64_t next_ = 0;
};

// A stream that joins this publisher. It reads live messages when it wants.
class Joining {
 public:
  explicit Joining(std::uint64_t seed) : publisher_(seed) {
    for (int i = 0; i < 300; ++i) publisher_.publish();
    carry_out(stream_.start());
  }

  void replay() {
    ASSERT_TRUE(from_.has_value());
    const auto [sequences, ended] = publisher_.replay(*std::exchange(from_, std::nullopt));
    for (const auto sequence : sequences) {
      if (from_ || !stream_.replaying()) return;
      publish_and_read();
      carry_out(stream_.replayed(message(sequence)));
    }
    if (stream_.replaying() && !from_) carry_out(stream_.replay_ended(!ended));
  }
  void read_the_rest() {
    for (const auto sequence : unread_) carry_out(stream_.live(message(sequence)));
  }
  [[nodiscard]] const EventStream& stream() const { return stream_; }
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] std::uint64_t published() const { return publisher_.next(); }

 private:
  void carry_out(const StreamStep& step) {
    ASSERT_FALSE(step.drop);
    for (const auto& item : step.apply) ASSERT_EQ(item.sequence, taken_++);
    if (step.replay_from) from_ = step.replay_from;
  }
  void publish_and_read() {
    if (publisher_.below(3) == 0) {
      unread_.push_back(publisher_.next());
      publisher_.publish();
    }
    if (unread_.empty() || !stream_.wants_live()) return;
    carry_out(stream_.live(message(unread_.front())));
    unread_.pop_front();
  }

  Publisher publisher_;
  EventStream stream_{{.replay_available = true, .buffered_messages_max = 4}};
  std::optional<std::uint64_t> from_;
  std::deque<std::uint64_t> unread_;  // live messages on the socket
  std::uint64_t taken_ = 0;
};

TEST(CutReplay, RandomCutsLoseNoMessages) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Joining joined(seed);
    for (int rounds = 0; joined.stream().replaying(); ++rounds) {
      ASSERT_LT(rounds, 2000);
      joined.replay();
      ASSERT_FALSE(HasFatalFailure());
    }
    joined.read_the_rest();
    EXPECT_FALSE(joined.stream().replaying());
    EXPECT_EQ(joined.taken(), joined.published());
    EXPECT_EQ(joined.stream().statistics().buffer_overflows, 0U);
  }
}

}  // namespace
}  // namespace sightline::events
