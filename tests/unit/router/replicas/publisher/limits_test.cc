// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <chrono>
#include <cstdint>
#include <variant>

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
using operations::Tier;
using test::stored;
using test::Stream;
using test::verified;

constexpr std::size_t kSmall = kPayloadBytesMin;

TEST(FramePublisher, WritesNothingLargerOnceItsMessagesMayBeLessLarge) {
  Stream s;
  s.tell(verified());
  s.take(stored(1, 5'000));
  s.publisher.limit_payload(kSmall);
  s.bytes_max = kSmall;
  // The earlier frame is too large to be sent, now or later. The heartbeat before it is too old.
  const auto before = s.frames();
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].seq, 1U);
  s.take(stored(10'000, 5'000));
  s.now += 1ms;
  std::uint64_t seq = 2;
  for (const Frame& frame : s.frames()) EXPECT_EQ(frame.seq, ++seq);
  EXPECT_GT(seq, 10U);
  const std::uint64_t epoch = s.publisher.epoch().value_or(0);
  s.hear(RangeAsk{.reader = "r", .epoch = epoch, .from = 3, .to = 3});
  EXPECT_EQ(s.only<Frame>("r").seq, 3U);
  for (const std::uint64_t gone : {1U, 2U}) {
    s.hear(RangeAsk{.reader = "r", .epoch = epoch, .from = gone, .to = gone});
    EXPECT_EQ(s.only<NotAvailable>("r").what, NotAvailable::MissingPart::Range);
  }
  s.hear(DumpAsk{.reader = "r", .epoch = epoch});
  s.finish_dump();
  EXPECT_EQ(s.pulled(s.only<Offer>("r"), "r").blocks.size(), 10'000U);
}

TEST(FramePublisher, RemakesADumpWithTooLargeChunks) {
  Stream s;
  s.take(stored(1, 20'000));
  s.tell(verified());
  s.frames();
  const std::uint64_t epoch = s.publisher.epoch().value_or(0);
  s.hear(DumpAsk{.reader = "early", .epoch = epoch});
  s.finish_dump();
  const auto early = s.only<Offer>("early");
  s.now += 10s;
  s.hear(DumpAsk{.reader = "late", .epoch = epoch});
  s.publisher.step(s.now);
  ASSERT_TRUE(s.publisher.is_making_dump());

  s.publisher.limit_payload(kSmall);
  s.bytes_max = kSmall;
  s.hear(ChunkAsk{.reader = "early", .dump = early.dump, .chunks = {0}});
  EXPECT_EQ(s.only<NotAvailable>("early").what, NotAvailable::MissingPart::Dump);
  s.finish_dump();
  EXPECT_EQ(s.pulled(s.only<Offer>("late"), "late").blocks.size(), 20'000U);
  EXPECT_EQ(s.publisher.epoch(), epoch);
}

TEST(FramePublisher, TakesNoLimitAboveTheOneItHas) {
  PublisherOptions options;
  options.payload_bytes_max = kSmall;
  Stream s(options);
  s.bytes_max = kSmall;
  s.tell(verified());
  s.publisher.limit_payload(2 * kSmall);
  s.take(stored(1, 5'000));
  s.now += 1ms;
  EXPECT_GT(s.frames().size(), 10U);
}

TEST(FramePublisher, LimitsFramesForASlowCarrierAndRepeatsTheRest) {
  PublisherOptions options;
  options.payload_bytes_max = kSmall;
  options.frames_bytes_max = 4 * kSmall;
  Stream s(options);
  s.bytes_max = kSmall;
  s.tell(verified());
  s.take(stored(1, 50'000));
  EXPECT_LE(s.publisher.memory_bytes(),
            s.publisher.held().memory_bytes() + 50'000 * 9 + 5 * kSmall);
  s.now += 1ms;
  const auto sent = s.frames();
  EXPECT_LE(sent.size(), 8U);  // each about half a payload
  const std::uint64_t unsent = s.publisher.statistics().frames_unsent;
  EXPECT_EQ(sent.size() + unsent, s.publisher.position());
  // The last one had room again, which shows readers the gap.
  s.take(stored(100'000));
  s.now += 1ms;
  const auto next = s.frames();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].seq, s.publisher.position());
  s.hear(RangeAsk{.reader = "r", .epoch = s.publisher.epoch().value_or(0), .from = 20, .to = 21});
  EXPECT_EQ(s.sent_to("r").size(), 2U);
}

}  // namespace
}  // namespace sightline::publisher
