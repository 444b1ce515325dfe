// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/result.h"

namespace sightline::processor {

// The settings of transformers' Qwen2VLImageProcessor, which serves Qwen2-VL, Qwen2.5-VL and
// Qwen3-VL. The values are the defaults of the class (5.23). A model's files may replace them.
struct ImageSettings {
  // In pixels.
  std::uint64_t patch_size = 14;
  // Patches per side that make one token.
  std::uint64_t merge_size = 2;
  // An area in pixels, despite its name.
  std::uint64_t shortest_edge = std::uint64_t{56} * 56;
  // An area in pixels, despite its name.
  std::uint64_t longest_edge = std::uint64_t{28} * 28 * 1280;
};

// The size of an image in tokens.
struct ImageGrid {
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  [[nodiscard]] std::uint64_t tokens() const { return rows * columns; }
};

// The size of an image in pixels.
struct PictureSize {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

// smart_resize of transformers 5.23, in tokens instead of pixels. Errors: InvalidArgument for a
// side of 0, and for a side more than 200 times as long as the other.
Result<ImageGrid> grid_of(const ImageSettings& settings, const PictureSize& size);

}  // namespace sightline::processor
