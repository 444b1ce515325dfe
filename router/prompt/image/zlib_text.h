// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>

#include "common/base/bytes.h"

// The only code that uses zlib.
namespace sightline::image {

// The outcome of inflate_text().
enum class Inflated : std::uint8_t {
  // The text is what the stream contained. The stream may end early without an error.
  Whole,
  // The bytes are not a zlib stream.
  Broken,
  // The text exceeds the limit.
  TooLarge,
};

// Inflates a zlib stream into `text`, which it replaces. It stops at bytes_max bytes. This limits
// the memory and time that a small hostile file can cost.
Inflated inflate_text(ByteView deflated, std::size_t bytes_max, std::string& text);

// CRC-32 of ISO 3309, the checksum of PNG chunks.
std::uint32_t crc32_of(ByteView bytes);

}  // namespace sightline::image
