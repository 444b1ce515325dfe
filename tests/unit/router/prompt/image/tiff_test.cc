// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <gtest/gtest.h>

#include "tests/unit/router/prompt/image/built_images.h"

namespace sightline::image {
namespace {

std::string tiff(std::vector<TiffEntry> more) {
  std::vector<TiffEntry> entries{{0x100, 3, 1, le16(40)}, {0x101, 4, 1, le32(24)}};
  entries.insert(entries.end(), more.begin(), more.end());
  return tiff_block(entries);
}

TEST(TiffHeader, TheOrientationOfTheFirstDirectorySwapsTheSides) {
  EXPECT_EQ(seen(tiff({})), "tiff 40x24");
  EXPECT_EQ(seen(tiff({{0x112, 3, 1, le16(6)}})), "tiff 24x40");
  EXPECT_EQ(seen(tiff({{0x112, 1, 1, "\x06"}})), "tiff 40x24");
}

TEST(TiffHeader, XmpCountsWhenThereIsNoOrientationTag) {
  const std::string packet = xmp_packet(8);
  const TiffEntry xmp{0x2BC, 1, static_cast<std::uint32_t>(packet.size()), packet};
  EXPECT_EQ(seen(tiff({xmp})), "tiff 24x40");
  EXPECT_EQ(seen(tiff({{0x112, 3, 1, le16(1)}, xmp})), "tiff 40x24");
}

TEST(TiffHeader, BothByteOrdersAndBigTiffAreRead) {
  const std::string big_endian = std::string("MM\0\x2a", 4) + be32(8) + be16(2) + be16(0x100) +
                                 be16(4) + be32(1) + be32(40) + be16(0x101) + be16(4) + be32(1) +
                                 be32(24) + be32(0);
  EXPECT_EQ(seen(big_endian), "tiff 40x24");
  const auto le64 = [](std::uint32_t value) { return le32(value) + le32(0); };
  const std::string big_tiff = std::string("II\x2b\0\x08\0\0\0", 8) + le64(16) + le64(2) +
                               le16(0x100) + le16(4) + le64(1) + le64(40) + le16(0x101) + le16(16) +
                               le64(1) + le64(24) + le64(0);
  EXPECT_EQ(seen(big_tiff), "tiff 40x24");
}

TEST(TiffHeader, FilesWithoutAUsableSizeAreRefused) {
  EXPECT_EQ(seen(tiff_block({{0x100, 3, 1, le16(40)}})), "refused");
  EXPECT_EQ(seen(tiff_block({{0x100, 11, 1, le32(40)}, {0x101, 3, 1, le16(24)}})), "refused");
  EXPECT_EQ(seen(tiff_block({{0x100, 8, 1, le16(0xFFFF)}, {0x101, 3, 1, le16(24)}})), "refused");
  EXPECT_EQ(seen(tiff({{0xBC01, 3, 1, le16(1)}})), "refused");
  EXPECT_EQ(seen(std::string("II\x2a\0", 4) + le32(0xFFFFFFF0)), "refused");
}

}  // namespace
}  // namespace sightline::image
