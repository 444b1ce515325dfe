// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "common/base/result.h"

#include "router/prompt/model/model_directory.h"

namespace sightline::model {

// What one picture becomes in the prompt.
struct ImageTokens {
  std::uint32_t rows = 0;     // patches after resizing
  std::uint32_t columns = 0;  // patches after resizing
  std::uint32_t tokens = 0;   // placeholder tokens
  friend bool operator==(const ImageTokens&, const ImageTokens&) = default;
};

// Size of a picture as the engine measures it, in pixels.
struct ImageSize {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

// Sides that differ by more than this factor are refused (transformers 5.23 smart_resize).
inline constexpr std::uint32_t kAspectRatioMax = 200;

// Largest area in pixels that is counted: doubles hold every integer up to it.
inline constexpr std::uint64_t kAreaMax = std::uint64_t{1} << 53U;

// Token count of a picture by the model's rule (transformers 5.23 Qwen2VLImageProcessor, vLLM
// 0.32). Errors: InvalidArgument, blamed on the client, for a side of 0 and for a picture too
// long and thin, TooLarge beyond kAreaMax or 2^32 patches; Unsupported when the family's rule is
// not known.
Result<ImageTokens> count_image_tokens(const ModelProfile& profile, ImageSize size);

}  // namespace sightline::model
