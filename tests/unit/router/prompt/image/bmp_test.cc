// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <gtest/gtest.h>

#include "tests/unit/router/prompt/image/built_images.h"

namespace sightline::image {
namespace {

struct Bmp {
  std::uint32_t header_bytes = 40;
  std::uint32_t width = 40;
  std::uint32_t height = 24;
  std::uint32_t depth = 24;
  std::uint32_t compression = 0;
};

std::string dib(const Bmp& bmp) {
  std::string header = le32(bmp.header_bytes);
  if (bmp.header_bytes == 12) {
    header += le16(bmp.width) + le16(bmp.height) + le16(1) + le16(bmp.depth);
  } else {
    header +=
        le32(bmp.width) + le32(bmp.height) + le16(1) + le16(bmp.depth) + le32(bmp.compression);
  }
  if (header.size() < bmp.header_bytes) header.resize(bmp.header_bytes);
  return header;
}

std::string bmp(const Bmp& parts) { return "BM" + std::string(12, '\0') + dib(parts); }

TEST(BmpHeader, EveryHeaderTypeIsRead) {
  for (const std::uint32_t bytes : {12U, 40U, 52U, 56U, 64U, 108U, 124U}) {
    EXPECT_EQ(seen(bmp({.header_bytes = bytes})), "bmp 40x24") << bytes;
    EXPECT_EQ(seen(dib({.header_bytes = bytes})), "bmp 40x24") << bytes;
  }
  EXPECT_EQ(seen(bmp({.header_bytes = 16})), "refused");
  EXPECT_EQ(seen(bmp({})).substr(0, 3), "bmp");
  EXPECT_EQ(seen(bmp({}).substr(0, 40)), "refused");
}

TEST(BmpHeader, ANegativeHeightIsReadFromTheTop) {
  EXPECT_EQ(seen(bmp({.height = static_cast<std::uint32_t>(-24)})), "bmp 40x24");
  EXPECT_EQ(seen(bmp({.height = 0x80000000U})), "too large");
  EXPECT_EQ(seen(bmp({.width = static_cast<std::uint32_t>(-40)})), "too large");
  EXPECT_EQ(seen(bmp({.height = 0})), "refused");
}

TEST(BmpHeader, UnknownDepthsAndCompressionsAreRefused) {
  EXPECT_EQ(seen(bmp({.depth = 2})), "refused");
  EXPECT_EQ(seen(bmp({.compression = 4})), "refused");
  EXPECT_EQ(seen(bmp({.depth = 8, .compression = 1})), "bmp 40x24");
}

}  // namespace
}  // namespace sightline::image
