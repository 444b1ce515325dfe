// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <gtest/gtest.h>
#include <zlib.h>

#include "tests/unit/router/prompt/image/built_images.h"

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

std::string nul(std::string_view key) { return std::string(key) + '\0'; }

std::string itxt(const std::string& text, bool compressed) {
  return png_chunk("iTXt", nul("XML:com.adobe.xmp") + (compressed ? '\1' : '\0') + '\0' +
                               nul("en") + nul("") + (compressed ? deflated(text) : text));
}

std::string raw_profile(std::uint32_t orientation) {
  const std::string block = std::string("Exif\0\0", 6) + orientation_block(orientation);
  return "\nexif\n      " + std::to_string(block.size()) + "\n" + to_hex(bytes_of(block)) + "\n";
}

TEST(PngHeader, ExifOrientationCountsBeforeAndAfterImageData) {
  const std::string exif = png_chunk("eXIf", orientation_block(6));
  EXPECT_EQ(seen(png_with("")), "png 40x24");
  EXPECT_EQ(seen(png_with(exif)), "png 24x40");
  EXPECT_EQ(seen(png_with("", exif)), "png 24x40");
  EXPECT_EQ(seen(png_with(exif, png_chunk("eXIf", orientation_block(1)))), "png 40x24");
  EXPECT_EQ(seen(png_with("", png_chunk("IDAT", "more") + exif)), "png 24x40");
}

TEST(PngHeader, OrientationInXmpCountsInAnyTextChunk) {
  const std::string packet = xmp_packet(6);
  EXPECT_EQ(seen(png_with(itxt(packet, false))), "png 24x40");
  EXPECT_EQ(seen(png_with(itxt(packet, true))), "png 24x40");
  EXPECT_EQ(seen(png_with("", itxt(packet, true))), "png 24x40");
  EXPECT_EQ(seen(png_with(png_chunk("tEXt", nul("XML:com.adobe.xmp") + packet))), "png 24x40");
  EXPECT_EQ(seen(png_with(png_chunk("zTXt", nul("XML:com.adobe.xmp") + '\0' + deflated(packet)))),
            "png 24x40");
  EXPECT_EQ(seen(png_with(png_chunk("tEXt", nul("Comment") + packet))), "png 40x24");
  // A text in another encoding than UTF-8 counts as bytes.
  EXPECT_EQ(seen(png_with(itxt("\xff" + packet, false))), "png 24x40");
}

TEST(PngHeader, RawExifProfileCountsWithoutAnExifChunk) {
  const std::string profile =
      png_chunk("zTXt", nul("Raw profile type exif") + '\0' + deflated(raw_profile(6)));
  EXPECT_EQ(seen(png_with(profile)), "png 24x40");
  EXPECT_EQ(seen(png_with(profile + png_chunk("eXIf", orientation_block(1)))), "png 40x24");
  EXPECT_EQ(seen(png_with(png_chunk("tEXt", nul("Raw profile type exif") + raw_profile(8)))),
            "png 24x40");
}

TEST(PngHeader, AnAnimationIsReadUpToItsSecondFrame) {
  const std::string control = png_chunk("acTL", be32(2) + be32(0));
  const std::string frame = png_chunk("fcTL", std::string(26, '\0'));
  const std::string exif = png_chunk("eXIf", orientation_block(6));
  EXPECT_EQ(seen(png_with(control + frame, exif + frame)), "png 24x40");
  EXPECT_EQ(seen(png_with(control + frame, frame + exif)), "png 40x24");
  // With one frame and no default image before it, the file is not animated. It is read to the end.
  const std::string single = png_chunk("acTL", be32(1) + be32(0));
  EXPECT_EQ(seen(png_with(single + frame, frame + exif)), "png 24x40");
  EXPECT_EQ(seen(png_with(single, frame + exif)), "png 40x24");
}

TEST(PngHeader, ChunksBeforeTheImageDataMustBeWholeAndRight) {
  std::string wrong = png_with(png_chunk("tEXt", "Comment"));
  wrong[8 + 25 + 8] ^= 1;  // a byte of the text
  EXPECT_EQ(seen(wrong), "refused");
  EXPECT_EQ(seen(png_with(png_chunk("a-Ab", "x"))), "refused");
  EXPECT_EQ(seen("\x89PNG\r\n\x1a\n" + png_chunk("IEND", "")), "refused");
  EXPECT_EQ(seen("\x89PNG\r\n\x1a\n" + png_chunk("IHDR", be32(4) + be32(4) + "\x03")), "refused");
  EXPECT_EQ(seen("\x89PNG\r\n\x1a\n" +
                 png_chunk("IHDR", be32(4) + be32(4) + std::string("\x03\0\0\0\0", 5)) +
                 png_chunk("IDAT", "")),
            "refused");
}

TEST(PngHeader, TooManyCompressedTextsMakeTheSizeUnknown) {
  std::string chunks;
  for (int i = 0; i < 4; ++i) chunks += itxt(xmp_packet(6), true);
  EXPECT_EQ(seen(png_with(chunks)), "png 24x40");
  EXPECT_EQ(seen(png_with(chunks + itxt(xmp_packet(1), true))), "unknown");
}

TEST(PngHeader, HugeInflatedTextIsIgnored) {
  const std::string bomb = std::string(4U << 20U, ' ') + xmp_packet(6);
  EXPECT_EQ(seen(png_with(itxt(bomb, true))), "png 40x24");
}

}  // namespace
}  // namespace sightline::image
