// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/bytes.h"
#include "common/base/result.h"

namespace sightline::api {

// The size of an image in pixels as vLLM 0.32 measures it, with the EXIF orientation applied.
struct ImageSize {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// Reads the size of a PNG, JPEG, WebP, GIF or BMP file. It decodes no pixels. It accepts a file
// with an error after its header, except for a truncated PNG or JPEG. Errors: InvalidArgument with
// the message of a vLLM 0.32 engine.
Result<ImageSize> measure_image(ByteView file);

}  // namespace sightline::api
