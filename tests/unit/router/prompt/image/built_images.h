// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"

#include "router/prompt/image/header.h"

// Images built byte by byte. They have headers and metadata, but no pixels.
namespace sightline::image {

// Returns big- and little-endian numbers as bytes.
std::string be16(std::uint32_t value);
std::string be32(std::uint32_t value);
std::string le16(std::uint32_t value);
std::string le32(std::uint32_t value);

// An entry of a directory. A value of at most 4 bytes is in the entry itself. A longer one is after
// the directory.
struct TiffEntry {
  std::uint32_t tag = 0;
  std::uint32_t type = 0;
  std::uint32_t count = 0;
  std::string value;
};
// Returns a little-endian TIFF block with one directory at offset 8.
std::string tiff_block(const std::vector<TiffEntry>& entries);
// Returns a block with one SHORT orientation entry.
std::string orientation_block(std::uint32_t orientation);
// Returns an XMP packet with the attribute form of tiff:Orientation.
std::string xmp_packet(std::uint32_t orientation);

// Returns SOI, the segments, a baseline frame of 40 x 24 pixels, and the start of a scan.
std::string jpeg_with(const std::string& segments);
std::string jpeg_segment(std::uint8_t marker, const std::string& payload);
std::string exif_segment(const std::string& tiff);
std::string xmp_segment(const std::string& packet);

// Returns the signature, an IHDR of 40 x 24, `chunks`, IDAT, `later` and IEND. The checksums are
// correct.
std::string png_with(const std::string& chunks, const std::string& later = {});
std::string png_chunk(std::string_view type, const std::string& payload);
std::string png_header(std::uint32_t width, std::uint32_t height);

// Returns a RIFF container with the chunks.
std::string webp_with(const std::string& chunks);
std::string riff_chunk(std::string_view type, const std::string& payload);
std::string vp8x(std::uint8_t features, std::uint32_t width, std::uint32_t height);
std::string vp8l(std::uint32_t width, std::uint32_t height);

// Returns the result of read_header() as short text: "jpeg 40x24", "unknown", "refused" or "too
// large".
std::string seen(std::string_view encoded);
// Returns the message of the error, or an empty text.
std::string refusal(std::string_view encoded);

}  // namespace sightline::image
