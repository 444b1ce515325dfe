// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"

#include "router/prompt/image/header.h"

// Pictures put together byte by byte. They have headers and metadata, but no pixels.
namespace sightline::image {

// Big- and little-endian numbers as bytes.
std::string be16(std::uint32_t value);
std::string be32(std::uint32_t value);
std::string le16(std::uint32_t value);
std::string le32(std::uint32_t value);

// A directory entry: its value stands in the entry itself when value has at most 4 bytes, else
// behind the directory.
struct TiffEntry {
  std::uint32_t tag = 0;
  std::uint32_t type = 0;
  std::uint32_t count = 0;
  std::string value;
};
// A little-endian TIFF block with one directory at offset 8.
std::string tiff_block(const std::vector<TiffEntry>& entries);
// One SHORT orientation entry.
std::string orientation_block(std::uint32_t orientation);
// An XMP packet with the attribute form of tiff:Orientation.
std::string xmp_packet(std::uint32_t orientation);

// SOI, the segments, a baseline frame of 40 x 24 pixels, the start of a scan.
std::string jpeg_with(const std::string& segments);
std::string jpeg_segment(std::uint8_t marker, const std::string& payload);
std::string exif_segment(const std::string& tiff);
std::string xmp_segment(const std::string& packet);

// Signature, an IHDR of 40 x 24, chunks, IDAT, later chunks, IEND; checksums are right.
std::string png_with(const std::string& chunks, const std::string& later = {});
std::string png_chunk(std::string_view type, const std::string& payload);
std::string png_header(std::uint32_t width, std::uint32_t height);

// A RIFF container around the chunks.
std::string webp_with(const std::string& chunks);
std::string riff_chunk(std::string_view type, const std::string& payload);
std::string vp8x(std::uint8_t features, std::uint32_t width, std::uint32_t height);
std::string vp8l(std::uint32_t width, std::uint32_t height);

// read_header as short text: "jpeg 40x24", "unknown", "refused" or "too large".
std::string seen(std::string_view encoded);
// The error's message; empty if there is none.
std::string refusal(std::string_view encoded);

}  // namespace sightline::image
