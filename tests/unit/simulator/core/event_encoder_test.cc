// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/event_encoder.h"

#include <gtest/gtest.h>

#include "simulator/core/sha256.h"

namespace sightline::core {
namespace {

const std::string kImage = "img-7f3a9c0e51d2b846";

BlockHash hash_ending_in(std::uint64_t value) {
  BlockHash hash{};
  store_be64(hash.data() + 24, value);
  return hash;
}

BlockStored two_blocks() {
  BlockStored stored;
  stored.hashes = {hash_ending_in(0xDAB7C3D2A1908F01), hash_ending_in(0x0123456789ABCDEF)};
  stored.tokens = {151644, 872, 198, 151652, 151655, 151655, 151655, 151655};
  stored.block_size = 4;
  stored.extra_keys = {{}, {{}, {{kImage, 0}}, {}}};
  return stored;
}

std::string hex(double timestamp_s, const std::vector<KvEvent>& events, EventFormat format) {
  return to_hex(encode({.timestamp_s = timestamp_s, .events = events, .rank = 0}, format));
}

// These fixed frames agree with the types that msgspec chooses.
TEST(EventEncoder, Release024WritesMapsWithTheTypeFirst) {
  EXPECT_EQ(
      hex(1789095808.5, {two_blocks()}, {.minor_version = 24}),
      "93cb41daa8dbe0200000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cfdab7"
      "c3d2a1908f01cf0123456789abcdefb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69647398ce"
      "0002505ccd0368ccc6ce00025064ce00025067ce00025067ce00025067ce00025067aa626c6f636b5f73697a6504"
      "a76c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b65797392c09192"
      "b4696d672d3766336139633065353164326238343600a967726f75705f69647800b26b765f63616368655f737065"
      "635f6b696e64ae66756c6c5f617474656e74696f6e00");
  EXPECT_EQ(
      hex(1789095809.0, {BlockRemoved{hash_ending_in(0x0123456789ABCDEF)}, AllBlocksCleared{}},
          {.minor_version = 24}),
      "93cb41daa8dbe04000009284a474797065ac426c6f636b52656d6f766564ac626c6f636b5f686173686573"
      "91cf0123456789abcdefa66d656469756da3475055a967726f75705f6964780081a474797065b0416c6c42"
      "6c6f636b73436c656172656400");
}

TEST(EventEncoder, Release020WritesArraysThatEndWithTheGroup) {
  EXPECT_EQ(
      hex(1789095808.5, {two_blocks()}, {.minor_version = 20}),
      "93cb41daa8dbe0200000919aab426c6f636b53746f72656492cfdab7c3d2a1908f01cf0123456789abcdefc098ce"
      "0002505ccd0368ccc6ce00025064ce00025067ce00025067ce00025067ce0002506704c0a3475055c092c09192b4"
      "696d672d37663361396330653531643262383436000000");
}

TEST(EventEncoder, Release017WritesMediaKeysAsStrings) {
  EXPECT_EQ(
      hex(1789095808.5, {two_blocks()}, {.minor_version = 17}),
      "93cb41daa8dbe02000009199ab426c6f636b53746f72656492cfdab7c3d2a1908f01cf0123456789abcdefc098ce"
      "0002505ccd0368ccc6ce00025064ce00025067ce00025067ce00025067ce0002506704c0a3475055c092c091b469"
      "6d672d3766336139633065353164326238343600");
}

TEST(EventEncoder, Release011OmitsRankLoraNameAndExtraKeys) {
  BlockStored stored = two_blocks();
  stored.hashes.pop_back();
  stored.tokens.resize(4);
  stored.extra_keys.pop_back();
  EXPECT_EQ(hex(1789095808.5,
                {stored, BlockRemoved{hash_ending_in(0x0123456789ABCDEF)}, AllBlocksCleared{}},
                {.minor_version = 11}),
            "92cb41daa8dbe02000009397ab426c6f636b53746f72656491cfdab7c3d2a1908f01c094ce0002505ccd03"
            "68ccc6ce0002506404c0a347505593ac426c6f636b52656d6f76656491cf0123456789abcdefa347505591"
            "b0416c6c426c6f636b73436c6561726564");
}

TEST(EventEncoder, WritesWholeDigestsAndNegativeOffsetsOnRequest) {
  BlockStored stored;
  stored.hashes = {sha256(bytes_of("x"))};
  stored.parent = sha256(bytes_of("p"));
  stored.tokens = {151655, 151655, 151655, 151655};
  stored.block_size = 4;
  stored.extra_keys = {{{}, {{kImage, -4}}, {}}};
  EXPECT_EQ(
      hex(1789095810.0, {stored}, {.minor_version = 24, .byte_hashes = true}),
      "93cb41daa8dbe0800000918ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391c4202d"
      "711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881b1706172656e745f626c6f636b5f68"
      "617368c420148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940a9746f6b656e5f6964"
      "7394ce00025067ce00025067ce00025067ce00025067aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d65"
      "6469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b657973919192b4696d672d3766336139633065"
      "3531643262383436fca967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f61"
      "7474656e74696f6e00");
  EXPECT_EQ(event_integer(stored.hashes[0]), 154678297519343745U);
}

TEST(EventEncoder, OrdersExtraKeysAsAdapterMediaSalt) {
  BlockStored stored = two_blocks();
  stored.lora = Lora{"ad", 3};
  stored.extra_keys = {{"path-lora", {{kImage, 3}}, "tenant-a"}, {}};
  const std::string text = hex(0, {stored}, {});
  EXPECT_NE(text.find("93a9706174682d6c6f726192b4696d672d37663361396330653531643262383436"
                      "03a874656e616e742d61"),
            std::string::npos);
  EXPECT_NE(text.find("a76c6f72615f696403"), std::string::npos);          // lora_id 3
  EXPECT_NE(text.find("a96c6f72615f6e616d65a26164"), std::string::npos);  // lora_name "ad"
}

TEST(EventEncoder, OnlyNewReleasesNameTheSession) {
  BlockStored stored = two_blocks();
  stored.session_id = "sess-42";
  const std::string session = "aa73657373696f6e5f6964a7736573732d3432";
  EXPECT_NE(hex(0, {stored}, {.minor_version = 32}).find(session), std::string::npos);
  EXPECT_EQ(hex(0, {stored}, {.minor_version = 25}).find(session), std::string::npos);
}

TEST(EventEncoder, AcceptsOnlyReleases011To032) {
  EXPECT_EQ(parse_event_format("v0.11")->minor_version, 11);
  EXPECT_EQ(parse_event_format("v0.32")->minor_version, 32);
  for (const char* text : {"v0.10", "v0.33", "0.32", "v1.2", "v0.", "v0.2x", "", "v0.-5"}) {
    const auto format = parse_event_format(text);
    ASSERT_FALSE(format.ok()) << text;
    EXPECT_NE(format.error().message.find("v0.11"), std::string::npos);
  }
}

TEST(EventEncoder, ReplaysHaveTheTopicSince025) {
  EXPECT_FALSE(replays_topic({.minor_version = 24}));
  EXPECT_TRUE(replays_topic({.minor_version = 25}));
}

}  // namespace
}  // namespace sightline::core
