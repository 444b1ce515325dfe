// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <chrono>
#include <cstdint>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "router/replicas/publisher/frame_publisher.h"
#include "tests/unit/router/replicas/publisher/stream.h"

namespace sightline::publisher {
namespace {

using namespace std::chrono_literals;
using frames::ChunkAsk;
using frames::DumpAsk;
using frames::Frame;
using frames::NotAvailable;
using frames::Offer;
using frames::RangeAsk;
using frames::RelearnAsk;
using frames::StreamAnswer;
using frames::StreamQuestion;
using operations::CacheFacts;
using operations::Tier;
using test::stored;
using test::Stream;
using test::verified;

TEST(FramePublisher, SendsFramesFromItsRingOrReportsThemGone) {
  PublisherOptions options;
  options.ring_bytes_max = 1'000;
  options.range_bytes_max = 400;
  Stream s(options);
  s.tell(verified());
  for (std::uint64_t i = 1; i <= 20; ++i) {
    s.take(stored(i));
    s.now += 1ms;
    s.frames();
  }
  ASSERT_EQ(s.publisher.position(), 21U);
  const std::uint64_t epoch = *s.publisher.epoch();
  s.hear(RangeAsk{.reader = "r", .epoch = epoch, .from = 20, .to = 1'000});
  const auto again = s.sent_to("r");
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(std::get<Frame>(again[0]).seq, 20U);
  EXPECT_EQ(std::get<Frame>(again[1]).operations.at(0), stored(20));
  s.hear(RangeAsk{.reader = "r", .epoch = epoch, .from = 1, .to = 2});
  EXPECT_EQ(s.only<NotAvailable>("r").what, NotAvailable::MissingPart::Range);
  s.hear(RangeAsk{.reader = "r", .epoch = epoch, .from = 15, .to = 21});
  EXPECT_EQ(s.only<NotAvailable>("r").what, NotAvailable::MissingPart::Range);
  s.hear(RangeAsk{.reader = "r", .epoch = epoch, .from = 22, .to = 22});
  EXPECT_TRUE(s.sent_to("r").empty());
  EXPECT_LE(s.publisher.memory_bytes(), s.publisher.held().memory_bytes() + 1'000);
}

TEST(FramePublisher, HasAllFramesAfterThoseThatLeftItsRing) {
  PublisherOptions options;
  options.ring_bytes_max = 1'000;
  Stream s(options);
  s.tell(verified());
  for (std::uint64_t i = 1; i <= 20; ++i) {
    s.take(stored(i));
    s.now += 1ms;
    s.frames();
  }
  std::uint64_t gone = 0;
  for (std::uint64_t seq = s.publisher.position(); seq > 0; --seq) {
    s.hear(RangeAsk{.reader = "r", .epoch = *s.publisher.epoch(), .from = seq, .to = seq});
    const auto found = s.sent_to("r");
    ASSERT_EQ(found.size(), 1U);
    if (std::holds_alternative<NotAvailable>(found[0])) {
      ++gone;
    } else {
      EXPECT_EQ(gone, 0U);
      EXPECT_EQ(std::get<Frame>(found[0]).seq, seq);
    }
  }
  EXPECT_GT(gone, 0U);
  EXPECT_LT(gone, s.publisher.position());
}

TEST(FramePublisher, AnswersAQuestionAtAPositionThatHasAllThatWasTaken) {
  Stream s;
  s.tell(verified());
  s.take(stored(1, 4));
  CacheFacts facts = verified();
  facts.caught_up = s.now;
  s.tell(facts);
  s.now += 500us;
  s.hear(StreamQuestion{.nonce = 3, .reader = "r"});
  const auto frames = s.frames();
  const auto answer = s.only<StreamAnswer>("r");
  EXPECT_EQ(answer.seq, frames.back().seq);
  EXPECT_EQ(frames.back().operations.at(0), stored(1, 4));
  EXPECT_EQ(answer.epoch, s.publisher.epoch());
  EXPECT_EQ(answer.agent, (frames::Instance{.name = "agent", .number = 77}));
  EXPECT_EQ(answer.state.digest.of(Tier::Gpu).count, 4U);
  EXPECT_EQ(answer.caught_up_ago, 1ms);  // never younger than it is
}

TEST(FramePublisher, LooksAtTheEngineBeforeAnAnswerOnRequest) {
  Stream s;
  s.tell(verified());
  s.hear(StreamQuestion{.nonce = 3, .reader = "r", .look = true});
  EXPECT_TRUE(s.publisher.take_look_wish());
  EXPECT_FALSE(s.publisher.take_look_wish());
  EXPECT_TRUE(s.sent_to("r").empty());
  CacheFacts facts = verified();
  facts.caught_up = s.now - 1ms;
  s.tell(facts);
  EXPECT_TRUE(s.sent_to("r").empty());
  s.now += 10ms;
  facts.caught_up = s.now;
  s.tell(facts);
  EXPECT_EQ(s.only<StreamAnswer>("r").caught_up_ago, 0ms);

  s.now += 1ms;
  s.hear(StreamQuestion{.nonce = 4, .reader = "r", .look = true});
  s.now += 1s;
  EXPECT_EQ(s.only<StreamAnswer>("r").caught_up_ago, 1'001ms);
}

TEST(FramePublisher, RefusesAsksOfAReaderAboveItsShareAndServesOthers) {
  PublisherOptions options;
  options.readers.asks_max = 3;
  options.readers.readers_max = 2;
  options.readers.forgotten_after = 1s;
  Stream s(options);
  for (std::uint64_t i = 1; i <= 5; ++i) s.hear(StreamQuestion{.nonce = i, .reader = "r"});
  s.hear(StreamQuestion{.nonce = 6, .reader = "q"});
  s.hear(StreamQuestion{.nonce = 7, .reader = "a third"});
  s.hear(StreamQuestion{.nonce = 8, .reader = ""});
  EXPECT_EQ(s.sent_to("r").size(), 3U);
  EXPECT_EQ(s.sent_to("q").size(), 1U);
  EXPECT_EQ(s.publisher.statistics().asks_refused, 4U);
  EXPECT_TRUE(s.sent_to("a third").empty());
  s.now += 1s;
  s.hear(StreamQuestion{.nonce = 9, .reader = "a third"});
  EXPECT_EQ(s.sent_to("a third").size(), 1U);
}

TEST(FramePublisher, RefusesAReaderAboveItsShareOfBytes) {
  PublisherOptions options;
  options.readers.reply_bytes_max = 10'000;
  Stream s(options);
  s.take(stored(1, 2'000));
  s.tell(verified());
  s.hear(DumpAsk{.reader = "r", .epoch = *s.publisher.epoch()});
  s.finish_dump();
  const ChunkAsk ask{.reader = "r", .dump = s.only<Offer>("r").dump, .chunks = {0}};
  s.hear(ask);
  s.hear(ask);
  EXPECT_EQ(s.sent_to("r").size(), 1U);
  s.now += 1s;
  s.hear(ask);
  EXPECT_EQ(s.sent_to("r").size(), 1U);
}

TEST(FramePublisher, AnswersARepeatedRequestOnceWithoutTakingShares) {
  Stream s;
  s.tell(verified());
  const std::uint64_t epoch = *s.publisher.epoch();
  const frames::Freshness first{.agent = test::kAgent, .number = 1};
  const std::vector<frames::Body> recorded = {
      StreamQuestion{.nonce = 1, .reader = "r", .freshness = {.agent = 0, .number = 1}},
      RangeAsk{.reader = "r", .epoch = epoch, .from = 1, .to = 1, .freshness = first},
      DumpAsk{.reader = "r", .epoch = epoch, .freshness = first},
      ChunkAsk{.reader = "r", .dump = 1, .chunks = {0}, .freshness = first},
      RelearnAsk{.reader = "r", .epoch = epoch, .freshness = first}};
  s.asks = 1;
  s.hear(StreamQuestion{.nonce = 2, .reader = "r"});
  EXPECT_EQ(s.only<StreamAnswer>("r").nonce, 2U);
  for (int i = 0; i < 5'000; ++i) {
    for (const auto& ask : recorded) s.hear_as_it_is(ask);
  }
  EXPECT_EQ(s.publisher.statistics().asks_repeated, 25'000U);
  EXPECT_FALSE(s.publisher.has_wish());
  s.hear(RangeAsk{.reader = "r", .epoch = epoch, .from = 1, .to = 1});
  EXPECT_EQ(s.only<Frame>("r").seq, 1U);
  EXPECT_EQ(s.publisher.statistics().asks_refused, 0U);
}

TEST(FramePublisher, AnswersOnlyQuestionsThatDoNotNameItsStream) {
  Stream s;
  s.tell(verified());
  s.frames();
  const std::uint64_t epoch = *s.publisher.epoch();
  const auto of_before = [](std::uint64_t number) {
    return frames::Freshness{.agent = test::kAgent + 1, .number = number};
  };
  s.hear_as_it_is(
      RangeAsk{.reader = "r", .epoch = epoch, .from = 1, .to = 1, .freshness = of_before(1)});
  s.hear_as_it_is(DumpAsk{.reader = "r", .epoch = epoch, .freshness = of_before(2)});
  s.hear_as_it_is(ChunkAsk{.reader = "r", .dump = 1, .chunks = {0}, .freshness = of_before(3)});
  s.hear_as_it_is(RelearnAsk{.reader = "r", .epoch = epoch, .freshness = of_before(4)});
  EXPECT_TRUE(s.sent_to("r").empty());
  EXPECT_FALSE(s.publisher.is_making_dump());
  EXPECT_FALSE(s.publisher.has_wish());
  EXPECT_EQ(s.publisher.statistics().asks_foreign, 4U);
  s.hear_as_it_is(
      StreamQuestion{.nonce = 5, .reader = "r", .look = true, .freshness = of_before(5)});
  EXPECT_EQ(s.only<StreamAnswer>("r").nonce, 5U);
  EXPECT_FALSE(s.publisher.has_wish()) << "whoever recorded it does not make the engine work";
}

TEST(FramePublisher, MessagesFromBeforeItsStreamTakeNoShare) {
  Stream s;
  s.tell(verified());
  for (std::uint64_t i = 1; i <= 5'000; ++i) {
    s.hear_as_it_is(
        StreamQuestion{.nonce = i, .reader = "r", .freshness = {.agent = 1, .number = i}});
  }
  EXPECT_EQ(s.sent_to("r").size(), 1'000U);
  s.asks = 5'000;
  for (int i = 0; i < 500; ++i) s.hear(StreamQuestion{.nonce = 1, .reader = "r"});
  EXPECT_EQ(s.sent_to("r").size(), 500U);
}

TEST(FramePublisher, SaysWhichMessagesMayNotOvertakeFrames) {
  Stream s;
  s.tell(verified());
  s.take(stored(1));
  s.hear(StreamQuestion{.nonce = 3, .reader = "r"});
  s.hear(RangeAsk{.reader = "r", .epoch = *s.publisher.epoch(), .from = 1, .to = 1});
  const auto ready = s.publisher.take_ready(s.now);
  ASSERT_EQ(ready.size(), 4U);  // a beat, a frame, the answer at its position, the beat again
  EXPECT_TRUE(ready[0].is_in_order && ready[1].is_in_order && ready[2].is_in_order);
  EXPECT_EQ(ready[2].reader, "r");
  EXPECT_FALSE(ready[3].is_in_order);
}

TEST(FramePublisher, KeepsRepliesUpToItsLimit) {
  PublisherOptions options;
  options.replies_bytes_max = 1'000;
  Stream s(options);
  for (std::uint64_t i = 1; i <= 100; ++i) s.hear(StreamQuestion{.nonce = i, .reader = "r"});
  const auto sent = s.sent_to("r").size();
  EXPECT_GT(sent, 0U);
  EXPECT_EQ(s.publisher.statistics().replies_refused, 100 - sent);
  s.hear(StreamQuestion{.nonce = 101, .reader = "r"});
  EXPECT_EQ(s.only<StreamAnswer>("r").nonce, 101U);
}

TEST(FramePublisher, RequestsARelearnOnceAndAgainLater) {
  Stream s;
  s.tell(verified());
  const RelearnAsk ask{.reader = "r", .epoch = *s.publisher.epoch()};
  s.hear(RelearnAsk{.reader = "r", .epoch = ask.epoch + 1});
  EXPECT_FALSE(s.publisher.take_relearn_wish());
  for (const auto pause : {1s, 2s, 4s, 8s}) {
    s.hear(ask);
    s.hear(ask);
    EXPECT_TRUE(s.publisher.take_relearn_wish());
    EXPECT_FALSE(s.publisher.take_relearn_wish());
    s.now += pause - 1ms;
    s.hear(ask);
    EXPECT_FALSE(s.publisher.take_relearn_wish());
    s.now += 1ms;
  }
  s.now += 11min;
  s.hear(ask);
  EXPECT_TRUE(s.publisher.take_relearn_wish());
  s.now += 1s;
  s.hear(ask);
  EXPECT_TRUE(s.publisher.take_relearn_wish());
}

TEST(FramePublisher, CountsWhatIsNotForItAndDoesNothing) {
  Stream s;
  s.tell(verified());
  s.frames();
  s.publisher.hear({.stream = {.worker = "w1", .rank = 2}, .body = StreamQuestion{.reader = "r"}},
                   s.now);
  s.hear(frames::Bye{.instance = 77});
  s.hear(Frame{.instance = 77, .epoch = *s.publisher.epoch(), .seq = 2});
  EXPECT_EQ(s.publisher.statistics().asks_foreign, 3U);
  EXPECT_TRUE(s.publisher.take_ready(s.now).empty());
}

}  // namespace
}  // namespace sightline::publisher
