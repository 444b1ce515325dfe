// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <gtest/gtest.h>

#include "tests/unit/router/prompt/image/built_images.h"

namespace sightline::image {
namespace {

std::string vp8(std::uint32_t width, std::uint32_t height) {
  return riff_chunk("VP8 ",
                    std::string("\x10\0\0\x9d\x01\x2a", 6) + le16(width) + le16(height) + "pixels");
}

TEST(WebPHeader, SimpleFilesHaveTheSizeOfTheirBitstream) {
  EXPECT_EQ(seen(webp_with(vp8(40, 24))), "webp 40x24");
  EXPECT_EQ(seen(webp_with(vp8(0x4028, 0x8018))), "webp 40x24");  // upper bits are scaling
  EXPECT_EQ(seen(webp_with(vp8l(16384, 1))), "webp 16384x1");
  EXPECT_EQ(seen(webp_with(vp8(0, 24))), "refused");
  EXPECT_EQ(seen(webp_with(riff_chunk("VP8L", "no signature"))), "refused");
}

TEST(WebPHeader, ExtendedFilesHaveTheSizeOfTheirCanvas) {
  EXPECT_EQ(seen(webp_with(vp8x(0, 40, 24) + vp8l(40, 24))), "webp 40x24");
  EXPECT_EQ(seen(webp_with(vp8x(0, 41, 24) + vp8l(40, 24))), "refused");
  EXPECT_EQ(seen(webp_with(vp8x(2, 41, 24) + riff_chunk("ANMF", "frame"))), "webp 41x24");
  EXPECT_EQ(seen(webp_with(vp8x(2, 41, 24))), "refused");
}

TEST(WebPHeader, OrientationNeedsItsFeatureBit) {
  const std::string exif = riff_chunk("EXIF", orientation_block(6));
  const std::string xmp = riff_chunk("XMP ", xmp_packet(6));
  EXPECT_EQ(seen(webp_with(vp8x(8, 40, 24) + vp8l(40, 24) + exif)), "webp 24x40");
  EXPECT_EQ(seen(webp_with(vp8x(0, 40, 24) + vp8l(40, 24) + exif)), "webp 40x24");
  EXPECT_EQ(seen(webp_with(vp8x(4, 40, 24) + vp8l(40, 24) + xmp)), "webp 24x40");
  EXPECT_EQ(seen(webp_with(vp8x(8, 40, 24) + vp8l(40, 24) + xmp)), "webp 40x24");
  EXPECT_EQ(seen(webp_with(vp8x(8, 40, 24) + vp8l(40, 24) + exif +
                           riff_chunk("EXIF", orientation_block(1)))),
            "webp 24x40");
  EXPECT_EQ(seen(webp_with(vp8x(4, 40, 24) + vp8l(40, 24) + riff_chunk("XMP ", "") + xmp)),
            "webp 40x24");
  // A simple file ends with its image.
  EXPECT_EQ(seen(webp_with(vp8l(40, 24) + exif)), "webp 40x24");
}

TEST(WebPHeader, ContainersThatDoNotFitAreRefused) {
  const std::string whole = webp_with(vp8x(8, 40, 24) + vp8l(40, 24));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(seen(whole.substr(0, length)), "refused") << length;
  }
  EXPECT_EQ(seen(whole + "trailing bytes"), "webp 40x24");
  EXPECT_EQ(seen("RIFF" + le32(4) + "WAVE"), "refused");
  EXPECT_EQ(seen(webp_with(vp8x(8, 40, 24) + "VP8L" + le32(0xFFFFFFFF) + "x")), "unknown");
}

}  // namespace
}  // namespace sightline::image
