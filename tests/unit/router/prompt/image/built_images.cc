// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/router/prompt/image/built_images.h"

#include "router/prompt/image/zlib_text.h"
#include "tests/golden/images/image_files.h"

namespace sightline::image {

std::string be16(std::uint32_t v) {
  return {static_cast<char>(v >> 8U & 255U), static_cast<char>(v & 255U)};
}
std::string be32(std::uint32_t v) { return be16(v >> 16U) + be16(v & 0xFFFFU); }
std::string le16(std::uint32_t v) {
  return {static_cast<char>(v & 255U), static_cast<char>(v >> 8U & 255U)};
}
std::string le32(std::uint32_t v) { return le16(v & 0xFFFFU) + le16(v >> 16U); }

std::string tiff_block(const std::vector<TiffEntry>& entries) {
  std::string directory = le16(static_cast<std::uint32_t>(entries.size()));
  std::string values;
  const std::size_t values_at = 8 + 2 + 12 * entries.size() + 4;
  for (const TiffEntry& entry : entries) {
    directory += le16(entry.tag) + le16(entry.type) + le32(entry.count);
    if (entry.value.size() <= 4) {
      directory += entry.value + std::string(4 - entry.value.size(), '\0');
    } else {
      directory += le32(static_cast<std::uint32_t>(values_at + values.size()));
      values += entry.value;
    }
  }
  return std::string("II\x2a\0", 4) + le32(8) + directory + le32(0) + values;
}

std::string orientation_block(std::uint32_t orientation) {
  return tiff_block({{0x0112, 3, 1, le16(orientation)}});
}

std::string xmp_packet(std::uint32_t orientation) {
  return "<x:xmpmeta><rdf:Description tiff:Orientation=\"" + std::to_string(orientation) +
         "\"/></x:xmpmeta>";
}

std::string jpeg_segment(std::uint8_t marker, const std::string& payload) {
  return std::string("\xff") + static_cast<char>(marker) +
         be16(static_cast<std::uint32_t>(payload.size() + 2)) + payload;
}

std::string exif_segment(const std::string& tiff) {
  return jpeg_segment(0xE1, std::string("Exif\0\0", 6) + tiff);
}

std::string xmp_segment(const std::string& packet) {
  return jpeg_segment(0xE1, std::string("http://ns.adobe.com/xap/1.0/\0", 29) + packet);
}

std::string jpeg_with(const std::string& segments) {
  const std::string frame =
      std::string("\x08") + be16(24) + be16(40) + "\x01\x01\x11" + std::string(1, '\0');
  return "\xff\xd8" + segments + jpeg_segment(0xC0, frame) +
         jpeg_segment(0xDA, std::string("\x01\x01\0\0\x3f\0", 6));
}

std::string png_chunk(std::string_view type, const std::string& payload) {
  const std::string checked = std::string(type) + payload;
  return be32(static_cast<std::uint32_t>(payload.size())) + checked +
         be32(crc32_of(bytes_of(checked)));
}

std::string png_header(std::uint32_t width, std::uint32_t height) {
  return png_chunk("IHDR", be32(width) + be32(height) + std::string("\x08\x02\0\0\0", 5));
}

std::string png_with(const std::string& chunks, const std::string& later) {
  return "\x89PNG\r\n\x1a\n" + png_header(40, 24) + chunks + png_chunk("IDAT", "pixels") + later +
         png_chunk("IEND", "");
}

std::string riff_chunk(std::string_view type, const std::string& payload) {
  std::string chunk =
      std::string(type) + le32(static_cast<std::uint32_t>(payload.size())) + payload;
  if (payload.size() % 2 == 1) chunk.push_back('\0');
  return chunk;
}

std::string webp_with(const std::string& chunks) {
  return "RIFF" + le32(static_cast<std::uint32_t>(chunks.size() + 4)) + "WEBP" + chunks;
}

std::string vp8x(std::uint8_t features, std::uint32_t width, std::uint32_t height) {
  return riff_chunk("VP8X", std::string(1, static_cast<char>(features)) + std::string(3, '\0') +
                                le32(width - 1).substr(0, 3) + le32(height - 1).substr(0, 3));
}

std::string vp8l(std::uint32_t width, std::uint32_t height) {
  return riff_chunk("VP8L", "\x2f" + le32((width - 1) | (height - 1) << 14U) + "pixels");
}

std::string seen(std::string_view encoded) { return golden::header_seen(bytes_of(encoded)); }

std::string refusal(std::string_view encoded) {
  const Header header = read_header(bytes_of(encoded));
  const auto* error = std::get_if<Error>(&header);
  return error == nullptr ? std::string() : error->message;
}

}  // namespace sightline::image
