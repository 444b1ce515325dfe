// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <gtest/gtest.h>

#include "tests/unit/router/prompt/image/built_images.h"

namespace sightline::image {
namespace {

std::string screen(std::uint32_t width, std::uint32_t height) {
  return "GIF89a" + le16(width) + le16(height) + std::string(3, '\0');
}

std::string frame(std::uint32_t x, std::uint32_t y, std::uint32_t width, std::uint32_t height) {
  return "," + le16(x) + le16(y) + le16(width) + le16(height) + std::string(1, '\0') + "\x08";
}

TEST(GifHeader, TheCanvasHoldsScreenAndFirstFrame) {
  EXPECT_EQ(seen(screen(100, 80) + frame(0, 0, 40, 24)), "gif 100x80");
  EXPECT_EQ(seen(screen(10, 80) + frame(0, 0, 40, 24)), "gif 40x80");
  EXPECT_EQ(seen(screen(10, 10) + frame(5, 6, 40, 24)), "gif 45x30");
  EXPECT_EQ(seen(screen(0, 0) + frame(0, 0, 40, 24)), "gif 40x24");
  EXPECT_EQ(seen(screen(40, 24) + frame(0, 0, 1, 1) + frame(0, 0, 90, 90)), "gif 40x24");
}

TEST(GifHeader, ExtensionsPalettesAndJunkAreSkipped) {
  const std::string control = std::string("!\xf9\x04\x01\0\0\x05\0", 8);
  const std::string comment = std::string("!\xfe\x05hello\x03you\0", 13);
  const std::string empty_comment = std::string("!\xfe\0", 3);
  const std::string loop = std::string("!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0", 19);
  EXPECT_EQ(
      seen(screen(9, 9) + loop + comment + empty_comment + control + "junk" + frame(0, 0, 40, 24)),
      "gif 40x24");
  std::string palette = screen(9, 9);
  palette[10] = '\x81';  // 4 colours
  EXPECT_EQ(seen(palette + std::string(12, ',') + frame(0, 0, 40, 24)), "gif 40x24");
}

TEST(GifHeader, FilesWithoutAFrameAreRefused) {
  EXPECT_EQ(seen(screen(40, 24)), "refused");
  EXPECT_EQ(seen(screen(40, 24) + ";" + frame(0, 0, 40, 24)), "refused");
  EXPECT_EQ(seen(screen(40, 24) + frame(0, 0, 40, 24).substr(0, 10)), "refused");
  EXPECT_EQ(seen(screen(40, 24) + std::string("!\xf9\x02\x01\0\0", 6) + frame(0, 0, 4, 2)),
            "refused");
  EXPECT_EQ(seen(screen(0, 0) + frame(0, 0, 0, 5)), "refused");
}

}  // namespace
}  // namespace sightline::image
