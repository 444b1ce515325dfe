// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/publisher/dumps.h"

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "tests/unit/router/replicas/publisher/stream.h"

namespace sightline::publisher {
namespace {

using namespace std::chrono_literals;
using frames::ChunkAsk;
using frames::DumpAsk;
using frames::Frame;
using frames::NotAvailable;
using frames::Offer;
using keys::BlockKey;
using operations::Clear;
using operations::Operation;
using operations::Remove;
using operations::Store;
using operations::Tier;
using test::keys_from;
using test::Model;
using test::stored;
using test::Stream;
using test::verified;

TEST(FramePublisher, SharesADumpAndFreesItAMinuteAfterUse) {
  Stream s;
  s.take(stored(1, 5'000));
  s.tell(verified());
  const std::uint64_t epoch = *s.publisher.epoch();
  s.hear(DumpAsk{.reader = "r", .epoch = epoch});
  s.hear(DumpAsk{.reader = "q", .epoch = epoch});
  EXPECT_TRUE(s.publisher.is_making_dump());
  EXPECT_TRUE(s.sent_to("r").empty());
  s.finish_dump();
  const auto offer = s.only<Offer>("r");
  EXPECT_EQ(s.only<Offer>("q"), offer);
  EXPECT_EQ(offer.epoch, epoch);
  EXPECT_EQ(offer.seq, s.publisher.position());
  s.now += 2s;
  s.hear(DumpAsk{.reader = "p", .epoch = epoch});
  EXPECT_EQ(s.only<Offer>("p"), offer);
  EXPECT_EQ(s.pulled(offer, "p").blocks.size(), 5'000U);
  s.now += 1ms;
  s.hear(DumpAsk{.reader = "p", .epoch = epoch});
  EXPECT_TRUE(s.publisher.is_making_dump());
  s.finish_dump();
  s.sent_to("p");
  s.now += 59s;
  s.sent_to("p");
  s.hear(ChunkAsk{.reader = "p", .dump = offer.dump, .chunks = {0, 99}});
  EXPECT_EQ(s.sent_to("p").size(), 1U);
  s.now += 60s;
  s.sent_to("p");
  s.hear(ChunkAsk{.reader = "p", .dump = offer.dump, .chunks = {0}});
  const auto gone = s.only<NotAvailable>("p");
  EXPECT_EQ(gone.what, NotAvailable::MissingPart::Dump);
  EXPECT_EQ(gone.id, offer.dump);
}

TEST(FramePublisher, DumpsTheBlocksAtAPositionWithAllOperations) {
  Stream s;
  s.tell(verified());
  s.take(stored(1, 3));
  s.hear(DumpAsk{.reader = "r", .epoch = *s.publisher.epoch()});
  s.take(stored(9));
  s.finish_dump();
  s.now += 1ms;
  const auto frames = s.frames();
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(frames[1].operations.at(0), stored(1, 3));
  const auto offer = s.only<Offer>("r");
  EXPECT_EQ(offer.seq, frames[1].seq);
  EXPECT_EQ(s.pulled(offer, "r").blocks.size(), 3U);
}

TEST(FramePublisher, GivesUpTheOlderDumpWhenBothTakeTooMuch) {
  PublisherOptions options;
  options.dump.kept_bytes_max = 10'000;
  Stream s(options);
  s.take(stored(1, 1'000));
  s.tell(verified());
  const DumpAsk ask{.reader = "r", .epoch = *s.publisher.epoch()};
  s.hear(ask);
  s.finish_dump();
  const auto first = s.only<Offer>("r");
  s.now += 3s;
  s.hear(ask);
  s.finish_dump();
  const auto second = s.only<Offer>("r");
  EXPECT_NE(first.dump, second.dump);
  s.hear(ChunkAsk{.reader = "r", .dump = first.dump, .chunks = {0}});
  EXPECT_EQ(s.only<NotAvailable>("r").id, first.dump);
  EXPECT_EQ(s.pulled(second, "r").blocks.size(), 1'000U);
}

TEST(FramePublisher, KeepsADumpThatAReaderPulls) {
  Stream s;
  s.take(stored(1, 1'000));
  s.tell(verified());
  const auto offered_to = [&](const std::string& reader) {
    s.hear(DumpAsk{.reader = reader, .epoch = *s.publisher.epoch()});
    s.finish_dump();
    return s.only<Offer>(reader);
  };
  const auto is_there = [&](const Offer& offer) {
    s.hear(ChunkAsk{.reader = "x", .dump = offer.dump, .chunks = {0}});
    return std::holds_alternative<frames::DumpChunk>(s.sent_to("x").at(0));
  };
  const Offer first = offered_to("p");
  s.now += 3s;
  const Offer second = offered_to("q");
  EXPECT_NE(first.dump, second.dump);
  s.now += 3s;
  EXPECT_TRUE(is_there(first));
  EXPECT_TRUE(is_there(second));
  EXPECT_EQ(offered_to("r"), second) << "both are pulled";
  s.now += 4s;
  EXPECT_TRUE(is_there(first));
  s.now += 2s;
  const Offer third = offered_to("r");
  EXPECT_NE(third.dump, second.dump);
  EXPECT_TRUE(is_there(first)) << "the second was unused for longer";
  EXPECT_FALSE(is_there(second));
}

TEST(FramePublisher, KeepsADumpWithoutRoomForAnother) {
  PublisherOptions options;
  options.dump.kept_bytes_max = 10'000;
  Stream s(options);
  s.take(stored(1, 1'000));
  s.tell(verified());
  const std::uint64_t epoch = *s.publisher.epoch();
  s.hear(DumpAsk{.reader = "p", .epoch = epoch});
  s.finish_dump();
  const auto first = s.only<Offer>("p");
  s.now += 3s;
  EXPECT_EQ(s.pulled(first, "p").blocks.size(), 1'000U);
  s.hear(DumpAsk{.reader = "q", .epoch = epoch});
  s.finish_dump();
  EXPECT_EQ(s.only<Offer>("q"), first);
}

TEST(FramePublisher, OffersNoDumpWhoseNextFrameHasLeftTheRing) {
  PublisherOptions options;
  options.ring_bytes_max = 600;
  Stream s(options);
  s.tell(verified());
  s.hear(DumpAsk{.reader = "r", .epoch = *s.publisher.epoch()});
  s.finish_dump();
  EXPECT_EQ(s.only<Offer>("r").chunks, 0U);
  for (std::uint64_t i = 1; i <= 20; ++i) {
    s.take(stored(i));
    s.now += 1ms;
    s.frames();
  }
  s.hear(DumpAsk{.reader = "r", .epoch = *s.publisher.epoch()});
  EXPECT_TRUE(s.publisher.is_making_dump());
}

TEST(FramePublisher, NotifiesWaitingReadersOfAnEndedEpoch) {
  Stream s;
  s.tell(verified());
  const std::uint64_t epoch = *s.publisher.epoch();
  s.hear(DumpAsk{.reader = "q", .epoch = epoch});
  s.hear(DumpAsk{.reader = "r", .epoch = epoch});
  s.cache.epoch = 6;
  s.take(stored(1));
  EXPECT_FALSE(s.publisher.is_making_dump());
  EXPECT_EQ(s.only<NotAvailable>("q").id, epoch);
  EXPECT_EQ(s.only<NotAvailable>("r").id, epoch);
}

TEST(FramePublisher, RestartsADumpAfterTooManyChanges) {
  PublisherOptions options;
  options.dump.changed_max = 10;
  options.dump.blocks_per_step = 10;
  Stream s(options);
  s.take(stored(1, 100));
  s.tell(verified());
  s.hear(DumpAsk{.reader = "r", .epoch = *s.publisher.epoch()});
  s.publisher.step(s.now);
  s.take(Remove{.tier = Tier::Gpu, .keys = keys_from(50, 11)});
  s.finish_dump();
  EXPECT_EQ(s.publisher.statistics().dumps_anew, 1U);
  EXPECT_EQ(s.pulled(s.only<Offer>("r"), "r").blocks.size(), 89U);
}

Operation drawn_operation(Rng& rng, std::uint32_t keys) {
  const auto tier = static_cast<Tier>(rng.below(operations::kTierCount));
  const std::uint32_t from = rng.below(keys);
  const auto some = keys_from(from, 1 + rng.below(6));
  if (rng.below(200) == 0) return Clear{};
  if (rng.below(5) < 2) return Remove{.tier = tier, .keys = some};
  Store store{.tier = tier, .parent = {}, .keys = some};
  if (from > 0) store.parent = BlockKey{from - 1};
  return store;
}

// A router that joins at a random time, requests a dump and follows from there.
void follow_a_history(std::uint64_t seed) {
  PublisherOptions options;
  options.payload_bytes_max = 4'096;
  options.dump.blocks_per_step = 1 + seed % 50;
  Stream s(options, seed);
  s.bytes_max = 4'096;
  Rng rng(seed * 1'000);
  Model cache;
  const std::uint32_t keys = 20 + rng.below(800);
  const auto happen = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const Operation operation = drawn_operation(rng, keys);
      s.take(operation);
      cache.apply(operation);
    }
    s.now += std::chrono::microseconds(rng.below(2'000));
  };
  happen(300);
  s.tell(verified());
  happen(100);
  s.hear(DumpAsk{.reader = "r", .epoch = *s.publisher.epoch()});
  std::vector<Frame> live;
  const auto listen = [&] {
    for (Frame& frame : s.frames()) live.push_back(std::move(frame));
  };
  for (listen(); s.publisher.is_making_dump(); listen()) {
    happen(static_cast<int>(rng.below(30)));
    s.publisher.step(s.now);
  }
  const auto offer = s.only<Offer>("r");
  Model router = s.pulled(offer, "r");
  happen(200);
  s.now += 1s;
  listen();
  ASSERT_TRUE(live.back().beat);
  std::uint64_t seq = offer.seq;
  for (const Frame& frame : live) {
    if (frame.seq <= offer.seq) continue;
    ASSERT_EQ(frame.seq, ++seq);
    for (const Operation& operation : frame.operations) router.apply(operation);
    if (!frame.beat) continue;
    ASSERT_EQ(frame.beat->digest, router.digest()) << "position " << seq;
  }
  EXPECT_EQ(router.blocks, cache.blocks);
}

TEST(FramePublisher, DumpAndLaterFramesGiveTheCachesContent) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    follow_a_history(seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sightline::publisher
