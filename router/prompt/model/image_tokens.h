// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/result.h"

#include "router/prompt/model/model_directory.h"

namespace sightline::model {

// The patches and tokens that one image has in the engine.
struct ImageTokens {
  std::uint32_t rows = 0;     // patches from top to bottom, after resizing
  std::uint32_t columns = 0;  // patches from left to right, after resizing
  std::uint32_t tokens = 0;   // placeholder tokens in the prompt
  friend bool operator==(const ImageTokens&, const ImageTokens&) = default;
};

// Size of an image in pixels, as the engine measures it.
struct ImageSize {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

// The longer side of an image may be at most this many times the shorter one. The engine rejects
// other images (transformers 5.23, smart_resize).
inline constexpr std::uint32_t kAspectRatioMax = 200;

// Largest area of an image in pixels. A double holds every integer up to this one exactly.
inline constexpr std::uint64_t kAreaMax = std::uint64_t{1} << 53U;

// Counts the tokens of an image by the model's rule (transformers 5.23, Qwen2VLImageProcessor, vLLM
// 0.32). Errors, blamed on the client:
// - InvalidArgument, if a side is 0 or the sides differ by more than kAspectRatioMax.
// - TooLarge, if the area exceeds kAreaMax or the patches exceed 2^32 - 1.
// - Unsupported, if the router does not know the rule of the model's family.
Result<ImageTokens> count_image_tokens(const ModelProfile& profile, ImageSize size);

}  // namespace sightline::model
