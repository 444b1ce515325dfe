// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/image/zlib_text.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace sightline::image {
namespace {

std::string deflated(const std::string& text) {
  std::string out(compressBound(static_cast<uLong>(text.size())), '\0');
  uLongf size = static_cast<uLongf>(out.size());
  compress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(text.data()),
           static_cast<uLong>(text.size()));
  out.resize(size);
  return out;
}

TEST(ZlibText, GivesTheWholeTextUpToTheLimit) {
  const std::string text(100'000, 'x');
  std::string out;
  EXPECT_EQ(inflate_text(bytes_of(deflated(text)), text.size(), out), Inflated::Whole);
  EXPECT_EQ(out, text);
  EXPECT_EQ(inflate_text(bytes_of(deflated(text)), 99'999, out), Inflated::TooLarge);
}

TEST(ZlibText, TruncatedStreamGivesItsTextAndGarbageIsBroken) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919);
  const std::string packed = deflated(text);
  std::string out;
  EXPECT_EQ(inflate_text(bytes_of(packed.substr(0, packed.size() / 2)), 1U << 20U, out),
            Inflated::Whole);
  EXPECT_GT(out.size(), 1000U);
  EXPECT_TRUE(text.starts_with(out));
  EXPECT_EQ(inflate_text(bytes_of("no zlib stream"), 1000, out), Inflated::Broken);
  EXPECT_EQ(inflate_text({}, 1000, out), Inflated::Whole);
  EXPECT_EQ(out, "");
}

TEST(ZlibText, ChecksumEqualsTheStandards) {
  EXPECT_EQ(crc32_of(bytes_of("123456789")), 0xCBF43926U);
}

}  // namespace
}  // namespace sightline::image
