// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/load/load_message.h"

#include <limits>

#include <gtest/gtest.h>

namespace sightline::load {
namespace {

constexpr double kRecent = 2.5;

RankLoad full_rank() {
  RankLoad rank{.rank = {"worker-1", 3}, .load = {}};
  rank.load = {.in_flight = 1, .prefill_tokens = 2, .blocks = 3, .recent_prefill_blocks = kRecent};
  return rank;
}

std::vector<Message> every_message() {
  const SnapshotPart part{.number = 1, .count = 3, .nonces = {5, 6}};
  return {
      LoadReport{.instance = 7, .name = "r1", .seq = 9, .snapshot = part, .ranks = {full_rank()}},
      LoadReport{.instance = 7, .name = "", .seq = 1, .snapshot = {}, .ranks = {}},
      LoadAsk{.asker = 7, .of = 8, .nonce = 9},
      Leave{.instance = 7},
  };
}

bool is_read(const fleet::Load& load) {
  // The encoder limits amounts to what the decoder accepts, so the bytes are changed instead.
  return decode(encode(LoadReport{.seq = 1, .ranks = {{.rank = {"w", 0}, .load = load}}})).ok();
}

TEST(LoadMessages, EveryKindIsReadAsItWasWritten) {
  for (const Message& message : every_message()) {
    const auto read = decode(encode(message));
    ASSERT_TRUE(read.ok()) << message.index();
    EXPECT_EQ(*read, message) << message.index();
  }
}

TEST(LoadMessages, CutOrLengthenedAnywhereAreRefused) {
  for (const Message& message : every_message()) {
    const std::string bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto read = decode(bytes.substr(0, size));
      ASSERT_FALSE(read.ok()) << message.index() << " cut to " << size;
      EXPECT_EQ(read.error().code, ErrorCode::Corrupt);
      EXPECT_EQ(read.error().blame, Blame::Worker);
    }
    EXPECT_FALSE(decode(bytes + '\0').ok());
  }
}

TEST(LoadMessages, OfAnUnknownKindAreRefused) {
  std::string bytes = encode(Leave{.instance = 1});
  bytes[0] = 3;
  EXPECT_FALSE(decode(bytes).ok());
}

TEST(LoadMessages, RefusesExcessiveCountsBeforeAllocating) {
  std::string ranks = encode(LoadReport{.seq = 1});
  for (std::size_t i = ranks.size() - 4; i < ranks.size(); ++i) ranks[i] = '\xff';
  EXPECT_FALSE(decode(ranks).ok());
  std::string nonces = encode(LoadReport{.seq = 1, .snapshot = SnapshotPart{}});
  for (std::size_t i = nonces.size() - 8; i < nonces.size() - 4; ++i) nonces[i] = '\xff';
  EXPECT_FALSE(decode(nonces).ok());
}

TEST(LoadMessages, MoreNoncesThanOneSnapshotAnswersAreRefused) {
  LoadReport told{.seq = 1, .snapshot = SnapshotPart{}};
  told.snapshot->nonces.assign(kNoncesMax, 1);
  std::string bytes = encode(told);
  EXPECT_TRUE(decode(bytes).ok());
  // One more, counted and there.
  const std::size_t count = bytes.size() - 4 - 8 * kNoncesMax - 4;
  ASSERT_EQ(static_cast<unsigned char>(bytes[count]), kNoncesMax);
  ++bytes[count];
  bytes.insert(count + 4, 8, '\1');
  EXPECT_FALSE(decode(bytes).ok());
}

TEST(LoadMessages, PositionsThatCannotBeAreRefused) {
  EXPECT_FALSE(decode(encode(LoadReport{.seq = 0})).ok());
  EXPECT_FALSE(
      decode(encode(LoadReport{.seq = 1, .snapshot = SnapshotPart{.number = 2, .count = 2}})).ok());
  EXPECT_FALSE(
      decode(encode(LoadReport{.seq = 1, .snapshot = SnapshotPart{.number = 0, .count = 0}})).ok());
  // The first part would have come before the first message.
  EXPECT_FALSE(
      decode(encode(LoadReport{.seq = 1, .snapshot = SnapshotPart{.number = 1, .count = 2}})).ok());
  EXPECT_TRUE(
      decode(encode(LoadReport{.seq = 2, .snapshot = SnapshotPart{.number = 1, .count = 2}})).ok());
}

TEST(LoadMessages, NamesThatAreNoTextAreRefused) {
  EXPECT_FALSE(decode(encode(LoadReport{.name = "\xff", .seq = 1})).ok());
}

TEST(LoadMessages, EncoderLimitsAmountsToTheDecodersMaximum) {
  constexpr auto kLots = std::numeric_limits<std::uint64_t>::max();
  fleet::Load load{.in_flight = std::numeric_limits<std::uint32_t>::max(),
                   .prefill_tokens = kLots,
                   .blocks = kLots,
                   .recent_prefill_blocks = std::numeric_limits<double>::infinity()};
  const auto read =
      decode(encode(LoadReport{.seq = 1, .ranks = {{.rank = {"w", 0}, .load = load}}}));
  ASSERT_TRUE(read.ok());
  const fleet::Load& told = std::get<LoadReport>(*read).ranks.front().load;
  EXPECT_EQ(told.in_flight, kInFlightMax);
  EXPECT_EQ(told.prefill_tokens, kAmountMax);
  EXPECT_EQ(told.blocks, kAmountMax);
  EXPECT_EQ(told.recent_prefill_blocks, 0);
  load.recent_prefill_blocks = -1;
  EXPECT_TRUE(is_read(load));
}

TEST(LoadMessages, AmountsThatNoRankCanHaveAreRefused) {
  const std::string bytes = encode(LoadReport{.seq = 1, .ranks = {full_rank()}});
  ASSERT_TRUE(decode(bytes).ok());
  // The last bytes are the four amounts: 4, 8, 8 and 8 of them, the highest byte last.
  for (const std::size_t from_end : {25U, 17U, 9U, 1U}) {
    std::string changed = bytes;
    changed[changed.size() - from_end] = '\x7f';
    if (from_end == 1) changed[changed.size() - 2] = '\xf0';  // infinite
    EXPECT_FALSE(decode(changed).ok()) << from_end;
  }
  std::string negative = bytes;
  negative.back() = static_cast<char>(negative.back() | '\x80');
  EXPECT_FALSE(decode(negative).ok());
}

TEST(LoadMessages, TakeNoMoreBytesThanWasCounted) {
  LoadReport told{.instance = 1, .name = std::string(frames::kNameBytesMax, 'n'), .seq = 1};
  told.snapshot = SnapshotPart{.number = 0, .count = 1, .nonces = {}};
  told.snapshot->nonces.assign(kNoncesMax, 1);
  EXPECT_EQ(encode(told).size(), kToldOverheadBytesMax);
  told.ranks = {full_rank()};
  EXPECT_EQ(encode(told).size(), kToldOverheadBytesMax + encoded_bytes(full_rank()));
}

}  // namespace
}  // namespace sightline::load
