// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/result.h"

namespace sightline::processor {

// Settings of transformers' Qwen2VLImageProcessor, which serves Qwen2-VL, Qwen2.5-VL and Qwen3-VL;
// the values are those of the class (5.23), which stand where a model's files are silent.
struct ImageSettings {
  std::uint64_t patch_size = 14;                         // pixels
  std::uint64_t merge_size = 2;                          // patches of one token, along a side
  std::uint64_t shortest_edge = std::uint64_t{56} * 56;  // an area in pixels, for all its name
  std::uint64_t longest_edge = std::uint64_t{28} * 28 * 1280;  // likewise
};

// A picture in tokens.
struct ImageGrid {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  [[nodiscard]] std::uint64_t tokens() const { return rows * columns; }
};

struct PictureSize {
  std::uint32_t width = 0;  // pixels
  std::uint32_t height = 0;
};

// smart_resize of transformers 5.23, in tokens instead of pixels. Errors: InvalidArgument for a
// side of 0, and for sides more than 200 times apart.
Result<ImageGrid> grid_of(const ImageSettings& settings, const PictureSize& size);

}  // namespace sightline::processor
