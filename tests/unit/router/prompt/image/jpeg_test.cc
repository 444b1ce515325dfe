// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <gtest/gtest.h>

#include "tests/unit/router/prompt/image/built_images.h"

namespace sightline::image {
namespace {

TEST(JpegHeader, OrientationComesFromTheFirstExifSegment) {
  EXPECT_EQ(seen(jpeg_with("")), "jpeg 40x24");
  EXPECT_EQ(seen(jpeg_with(exif_segment(orientation_block(6)))), "jpeg 24x40");
  EXPECT_EQ(
      seen(jpeg_with(exif_segment(orientation_block(6)) + exif_segment(orientation_block(1)))),
      "jpeg 24x40");
  EXPECT_EQ(
      seen(jpeg_with(exif_segment(orientation_block(1)) + exif_segment(orientation_block(6)))),
      "jpeg 40x24");
}

TEST(JpegHeader, AnExifBlockMaySpanSegments) {
  const std::string block =
      tiff_block({{0x10F, 2, 20, std::string(20, 'x')}, {0x112, 3, 1, le16(8)}});
  EXPECT_EQ(seen(jpeg_with(exif_segment(block.substr(0, 15)) + exif_segment(block.substr(15)))),
            "jpeg 24x40");
}

TEST(JpegHeader, OrientationMayBeInXmpAlone) {
  EXPECT_EQ(seen(jpeg_with(xmp_segment(xmp_packet(6)))), "jpeg 24x40");
  EXPECT_EQ(seen(jpeg_with(xmp_segment(xmp_packet(6)) + xmp_segment(xmp_packet(1)))), "jpeg 40x24");
  EXPECT_EQ(seen(jpeg_with(exif_segment(orientation_block(3)) + xmp_segment(xmp_packet(6)))),
            "jpeg 40x24");
}

TEST(JpegHeader, TheLastFrameHeaderBeforeTheScanCounts) {
  const std::string frame = std::string("\x08") + be16(7) + be16(9) + "\x01\x01\x11";
  EXPECT_EQ(
      seen("\xff\xd8" + jpeg_segment(0xC0, frame) +
           jpeg_segment(0xC2, std::string("\x08\0\x05\0\x06\x03", 6)) + jpeg_segment(0xDA, "")),
      "jpeg 6x5");
  // A file that ends after its frame header has a size, although it has no pixels.
  EXPECT_EQ(seen("\xff\xd8" + jpeg_segment(0xC1, frame)), "jpeg 9x7");
}

TEST(JpegHeader, JunkAndFillBytesBetweenSegmentsAreSkipped) {
  EXPECT_EQ(seen(jpeg_with(std::string("\xff\xff\xff") + jpeg_segment(0xE0, "x").substr(1) +
                           "junk" + std::string("\xff\0", 2) + "\xff\xd0")),
            "jpeg 40x24");
  EXPECT_EQ(seen(jpeg_with("\xff\x02")), "refused");
}

TEST(JpegHeader, OtherSampleSizesAndComponentCountsAreRefused) {
  const auto file = [](std::string frame) { return "\xff\xd8" + jpeg_segment(0xC0, frame); };
  EXPECT_EQ(seen(file(std::string("\x0c\0\x05\0\x06\x03", 6))), "refused");
  EXPECT_EQ(seen(file(std::string("\x08\0\x05\0\x06\x02", 6))), "refused");
  EXPECT_EQ(seen(file(std::string("\x08\0\0\0\x06\x03", 6))), "refused");  // no height
  EXPECT_EQ(seen(file(std::string("\x08\0\x05\0\x06\x04", 6))), "jpeg 6x5");
}

TEST(JpegHeader, ACutSegmentIsRefused) {
  const std::string whole = jpeg_with(exif_segment(orientation_block(6)));
  EXPECT_EQ(seen(whole.substr(0, 20)), "refused");
  EXPECT_EQ(seen(whole.substr(0, 3)), "refused");
}

}  // namespace
}  // namespace sightline::image
