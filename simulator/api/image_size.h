// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace sightline::api {

// A picture's size in pixels as vLLM 0.32 measures it, EXIF orientation applied.
struct ImageSize {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// Reads the size of a PNG, JPEG, WebP, GIF or BMP file. Pixels are not decoded, so a file that is
// broken behind its header passes, unless it is a PNG or JPEG cut short.
// Errors: InvalidArgument with the words of a vLLM 0.32 engine.
Result<ImageSize> measure_image(ByteView file);

}  // namespace sightline::api
