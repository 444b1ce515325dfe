// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <string>

#include "common/base/bytes.h"

// The one place that knows zlib.
namespace sightline::image {

enum class Inflated : std::uint8_t {
  Whole,     // text holds what the stream gave, which may end early without an error
  Broken,    // no zlib stream
  TooLarge,  // more than the limit
};

// Inflates a zlib stream of at most bytes_max bytes into text.
Inflated inflate_text(ByteView deflated, std::size_t bytes_max, std::string& text);

// CRC-32 of ISO 3309, as PNG chunks carry it.
std::uint32_t crc32_of(ByteView bytes);

}  // namespace sightline::image
