// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/image/exif.h"

#include <bit>

#include <gtest/gtest.h>

#include "tests/unit/router/prompt/image/built_images.h"

namespace sightline::image {
namespace {

bool exif_swaps(const std::string& block, const std::string& xmp = {}) {
  return swaps_sides({bytes_of(block), bytes_of(xmp)});
}

std::string le64(std::uint64_t value) {
  return le32(static_cast<std::uint32_t>(value)) + le32(static_cast<std::uint32_t>(value >> 32U));
}

TEST(Exif, OrientationsFiveToEightSwapTheSides) {
  for (std::uint32_t value = 0; value < 12; ++value) {
    EXPECT_EQ(exif_swaps(orientation_block(value)), value >= 5 && value <= 8) << value;
    EXPECT_EQ(xmp_swaps_sides(bytes_of(xmp_packet(value % 10))), value >= 5 && value <= 8);
  }
}

// Pillow looks the value up in a table of integers. A value of any numeric type counts if it equals
// one of them. Byte strings never count.
TEST(Exif, EveryNumericTypeCountsAndBytesDoNot) {
  struct Case {
    std::string name;
    TiffEntry entry;
    bool want_swap;
  };
  const auto six_f = std::bit_cast<std::uint32_t>(6.0F);
  const auto six_d = std::bit_cast<std::uint64_t>(6.0);
  const std::vector<Case> cases{
      {"BYTE", {0x112, 1, 1, "\x06"}, false},
      {"ASCII", {0x112, 2, 2, "6"}, false},
      {"SHORT", {0x112, 3, 1, le16(6)}, true},
      {"two SHORT, the first counts", {0x112, 3, 2, le16(6) + le16(1)}, true},
      {"many SHORT", {0x112, 3, 3, le16(6) + le16(1) + le16(1)}, true},
      {"no SHORT", {0x112, 3, 0, le16(6)}, false},
      {"LONG", {0x112, 4, 1, le32(6)}, true},
      {"LONG beyond 16 bits", {0x112, 4, 1, le32(0x10006)}, false},
      {"RATIONAL", {0x112, 5, 1, le32(12) + le32(2)}, true},
      {"RATIONAL by zero", {0x112, 5, 1, le32(6) + le32(0)}, false},
      {"SBYTE", {0x112, 6, 1, "\x06"}, true},
      {"UNDEFINED", {0x112, 7, 1, "\x06"}, false},
      {"SSHORT", {0x112, 8, 1, le16(6)}, true},
      {"SLONG", {0x112, 9, 1, le32(6)}, true},
      {"SRATIONAL", {0x112, 10, 1, le32(0xFFFFFFFA) + le32(0xFFFFFFFF)}, true},
      {"FLOAT", {0x112, 11, 1, le32(six_f)}, true},
      {"DOUBLE", {0x112, 12, 1, le64(six_d)}, true},
      {"IFD", {0x112, 13, 1, le32(6)}, true},
      {"LONG8", {0x112, 16, 1, le64(6)}, true},
      {"unknown type", {0x112, 14, 1, le16(6)}, false}};
  for (const Case& c : cases) EXPECT_EQ(exif_swaps(tiff_block({c.entry})), c.want_swap) << c.name;
}

TEST(Exif, AnOrientationOfAnyTypeHidesTheXmpPacket) {
  EXPECT_FALSE(exif_swaps(orientation_block(1), xmp_packet(6)));
  EXPECT_FALSE(exif_swaps(orientation_block(0), xmp_packet(6)));
  EXPECT_FALSE(exif_swaps(tiff_block({{0x112, 1, 1, "\x06"}}), xmp_packet(6)));
  EXPECT_TRUE(exif_swaps(tiff_block({{0x10F, 2, 4, "abc"}}), xmp_packet(6)));
  EXPECT_TRUE(exif_swaps("", xmp_packet(6)));
  EXPECT_TRUE(exif_swaps(std::string("Exif\0\0", 6), xmp_packet(6)));
}

TEST(Exif, ABrokenBlockCountsAsNoOrientation) {
  EXPECT_FALSE(exif_swaps("garbage and more", xmp_packet(6)));
  EXPECT_FALSE(exif_swaps("II", xmp_packet(6)));
  EXPECT_FALSE(exif_swaps(std::string("II\x2b\0", 4) + orientation_block(6), xmp_packet(6)));
}

TEST(Exif, FirstEntryOfATagCounts) {
  EXPECT_TRUE(exif_swaps(tiff_block({{0x112, 3, 1, le16(6)}, {0x112, 3, 1, le16(1)}})));
  EXPECT_FALSE(exif_swaps(tiff_block({{0x112, 3, 1, le16(1)}, {0x112, 3, 1, le16(6)}})));
  // An entry that Pillow cannot use does not count as the first.
  EXPECT_TRUE(exif_swaps(tiff_block({{0x112, 99, 1, le16(1)}, {0x112, 3, 1, le16(6)}})));
}

TEST(Exif, ValueBeyondTheBlockEndsTheDirectory) {
  std::string block = tiff_block({{0x10F, 2, 8, "01234567"}, {0x112, 3, 1, le16(6)}});
  ASSERT_TRUE(exif_swaps(block));
  block.replace(8 + 2 + 8, 4, le32(60));  // offset of the first value: 60 + 8 is too far
  EXPECT_FALSE(exif_swaps(block));
  // The directory goes on if its tag has a value already.
  std::string again =
      tiff_block({{0x10F, 2, 4, "abc"}, {0x10F, 2, 8, "01234567"}, {0x112, 3, 1, le16(6)}});
  again.replace(8 + 2 + 12 + 8, 4, le32(60));
  EXPECT_TRUE(exif_swaps(again));
  // A value larger than the whole block is skipped.
  block.replace(8 + 2 + 4, 4, le32(1000));
  EXPECT_TRUE(exif_swaps(block));
  block.replace(8 + 2 + 4, 4, le32(0xFFFFFFFF));
  EXPECT_TRUE(exif_swaps(block));
}

TEST(Exif, TruncatedDirectoryKeepsItsLeadingEntries) {
  const std::string block = tiff_block({{0x112, 3, 1, le16(6)}, {0x10F, 2, 4, "abc"}});
  EXPECT_TRUE(exif_swaps(block.substr(0, 8 + 2 + 12)));
  EXPECT_FALSE(exif_swaps(block.substr(0, 8 + 2 + 11)));
}

TEST(Exif, XmpCountsInBothFormsAndByItsFirstMatch) {
  EXPECT_TRUE(xmp_swaps_sides(bytes_of("<tiff:Orientation>8</tiff:Orientation>")));
  EXPECT_TRUE(xmp_swaps_sides(bytes_of("tiff:Orientation='1' tiff:Orientation=\"7\"")));
  EXPECT_FALSE(xmp_swaps_sides(bytes_of("tiff:Orientation=\"1\" tiff:Orientation=\"6\"")));
  EXPECT_FALSE(xmp_swaps_sides(bytes_of("tiff:Orientation=\"x\" Orientation=\"6\"")));
  EXPECT_FALSE(xmp_swaps_sides(bytes_of("tiff:Orientation=\"")));
}

}  // namespace
}  // namespace sightline::image
