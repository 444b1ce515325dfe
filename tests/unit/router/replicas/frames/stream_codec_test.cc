// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/frames/stream_codec.h"

#include <gtest/gtest.h>

#include "tests/support/replica_messages.h"

namespace sightline::frames {
namespace {

using operations::Operation;
using operations::Remove;
using operations::Store;
using operations::Tier;

TEST(ReplicaMessages, EveryKindIsReadAsItWasWritten) {
  for (const Message& message : test::every_replica_message()) {
    const auto read = decode(encode(message));
    ASSERT_TRUE(read.ok()) << message.body.index();
    EXPECT_EQ(*read, message) << message.body.index();
  }
}

TEST(ReplicaMessages, CutOrLengthenedAnywhereAreRefused) {
  for (const Message& message : test::every_replica_message()) {
    const std::string bytes = encode(message);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const auto read = decode(bytes.substr(0, size));
      ASSERT_FALSE(read.ok()) << message.body.index() << " cut to " << size;
      EXPECT_EQ(read.error().code, ErrorCode::Corrupt);
    }
    EXPECT_FALSE(decode(bytes + '\0').ok());
  }
}

TEST(ReplicaMessages, OfAnUnknownKindAreRefused) {
  std::string bytes = encode({{.worker = "w0"}, Bye{.instance = 1}});
  bytes[0] = static_cast<char>(std::variant_size_v<Body>);
  EXPECT_FALSE(decode(bytes).ok());
}

TEST(ReplicaMessages, RefusesExcessiveCountsBeforeAllocating) {
  // The count of keys is the 4 bytes in front of the last key and the flag for no beat.
  const Store store{.tier = Tier::Gpu, .parent = {}, .keys = {{1}}};
  std::string bytes = encode({{.worker = "w0"}, Frame{.operations = {store}}});
  for (std::size_t i = bytes.size() - 13; i < bytes.size() - 9; ++i) bytes[i] = '\xff';
  EXPECT_FALSE(decode(bytes).ok());
  const std::string chunks =
      encode({{.worker = "w0"}, ChunkAsk{.chunks = std::vector<std::uint32_t>(kChunksPerAskMax)}});
  EXPECT_TRUE(decode(chunks).ok());
}

TEST(ReplicaMessages, OperationsWithoutKeysAreRefused) {
  const auto none = encode({{}, Frame{.operations = {Remove{.tier = Tier::Gpu, .keys = {}}}}});
  EXPECT_FALSE(decode(none).ok());
}

// A megabyte of them would be 56 MB in memory.
TEST(ReplicaMessages, ClearsBehindEachOtherAreRefused) {
  const Operation clear = operations::Clear{};
  EXPECT_TRUE(decode(encode({{}, Frame{.operations = {clear}}})).ok());
  EXPECT_FALSE(decode(encode({{}, Frame{.operations = {clear, clear}}})).ok());
}

TEST(ReplicaMessages, ARangeThatEndsBeforeItsBeginningIsRefused) {
  EXPECT_TRUE(decode(encode({{}, RangeAsk{.from = 3, .to = 3}})).ok());
  EXPECT_FALSE(decode(encode({{}, RangeAsk{.from = 3, .to = 2}})).ok());
}

TEST(ReplicaMessages, ASentenceThatIsTooLongIsCut) {
  Frame frame;
  frame.beat.emplace().trouble = std::string(5'000, 'x');
  const auto read = decode(encode({{}, frame}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<Frame>(read->body).beat->trouble, std::string(kSentenceBytesMax, 'x'));
}

TEST(ReplicaMessages, ASentenceIsNotCutInTheMiddleOfACharacter) {
  Frame frame;
  frame.beat.emplace().trouble = "x" + std::string(kSentenceBytesMax - 2, 'x') + "\xc3\xa9";
  const auto read = decode(encode({{}, frame}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<Frame>(read->body).beat->trouble, std::string(kSentenceBytesMax - 1, 'x'));
}

TEST(ReplicaMessages, CutsASentenceWhereUtf8Ends) {
  Frame frame;
  frame.beat.emplace().trouble = "plain \xff words";
  const auto read = decode(encode({{}, frame}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<Frame>(read->body).beat->trouble, "plain ");
}

TEST(ReplicaMessages, WithTextThatIsNoUtf8AreRefused) {
  Frame frame;
  frame.beat.emplace().trouble = "plain words";
  std::string bytes = encode({{}, frame});
  bytes[bytes.find("words")] = '\xff';
  EXPECT_FALSE(decode(bytes).ok());
}

TEST(ReplicaMessages, WhatBlocksHeldBeforeAClearIsNotSent) {
  const operations::Clear clear{.held = std::vector<keys::BlockKey>{{1}}};
  const auto read = decode(encode({{}, Frame{.operations = {clear}}}));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<Frame>(read->body).operations.front(), Operation(operations::Clear{}));
}

TEST(ReplicaMessages, TakeNoMoreBytesThanWasCounted) {
  Frame frame;
  frame.beat = test::full_beat();
  frame.beat->trouble = std::string(kSentenceBytesMax, 'x');
  const Message bare{{.worker = std::string(kNameBytesMax, 'w')}, frame};
  EXPECT_LE(encode(bare).size(), kFrameOverheadBytesMax);
  Message full = bare;
  std::size_t counted = 0;
  for (const Operation& operation :
       {Operation(Store{.tier = Tier::Gpu, .parent = {}, .keys = {{1}, {2}}}),
        Operation(Remove{.tier = Tier::Gpu, .keys = {{1}}}), Operation(operations::Clear{})}) {
    std::get<Frame>(full.body).operations.push_back(operation);
    counted += encoded_bytes(operation);
  }
  EXPECT_LE(encode(full).size(), encode(bare).size() + counted);
}

TEST(Checksum, DependsOnOrderTierParentAndKeys) {
  const Store store{.tier = Tier::Gpu, .parent = {}, .keys = {{1}, {2}}};
  Store changed[] = {store, store, store, store, store};
  changed[0].tier = Tier::Cpu;
  changed[1].parent = keys::BlockKey{0};
  changed[2].keys = {{2}, {1}};
  changed[3].keys = {{1}};
  changed[4].keys = {{1}, {2}, {3}};
  Checksum plain;
  plain.add(store);
  for (const Store& other : changed) {
    Checksum checksum;
    checksum.add(other);
    EXPECT_NE(checksum.value(), plain.value());
  }
  Checksum parted;  // the same keys in two stores
  parted.add(Store{.tier = Tier::Gpu, .parent = {}, .keys = {{1}}});
  parted.add(Store{.tier = Tier::Gpu, .parent = keys::BlockKey{1}, .keys = {{2}}});
  EXPECT_NE(parted.value(), plain.value());
}

}  // namespace
}  // namespace sightline::frames
