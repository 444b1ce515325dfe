// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/model/image_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace sightline::model {
namespace {

// The sides of the resized image in units. A unit is `merge` patches wide and becomes one token.
struct Resized {
  std::uint64_t height = 0;
  std::uint64_t width = 0;
};

// Follows smart_resize of transformers 5.23 (models/qwen2_vl), with the same order of
// floating-point operations. The results are rounded and compared with limits, and another order
// would differ at the edges. Python divides the area exactly and rounds once. Doubles do the same
// up to kAreaMax.
//
// A side below half a unit rounds to 0, and so does the area. The lower limit then decides.
Resized smart_resize(const ImageRule& rule, ImageSize size) {
  const double factor = double{1} * rule.patch * rule.merge;
  const double height = size.height;
  const double width = size.width;
  const auto pixels_min = static_cast<double>(rule.pixels_min);
  const auto pixels_max = static_cast<double>(rule.pixels_max);
  // Rounds halves to even, as Python's round() does.
  double rows = std::nearbyint(height / factor);
  double columns = std::nearbyint(width / factor);
  const double area = rows * factor * (columns * factor);
  if (area > pixels_max) {
    const double beta = std::sqrt(height * width / pixels_max);
    rows = std::max(1.0, std::floor(height / beta / factor));
    columns = std::max(1.0, std::floor(width / beta / factor));
  } else if (area < pixels_min) {
    const double beta = std::sqrt(pixels_min / (height * width));
    rows = std::ceil(height * beta / factor);
    columns = std::ceil(width * beta / factor);
  }
  return {static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns)};
}

Error too_thin(ImageSize size) {
  return client_error(ErrorCode::InvalidArgument,
                      "the image is " + std::to_string(size.width) + " x " +
                          std::to_string(size.height) + " pixels. One side may be at most " +
                          std::to_string(kAspectRatioMax) + " times the other");
}

Error too_large(ImageSize size) {
  return client_error(ErrorCode::TooLarge, "the image is " + std::to_string(size.width) + " x " +
                                               std::to_string(size.height) +
                                               " pixels. Send a smaller one");
}

}  // namespace

Result<ImageTokens> count_image_tokens(const ModelProfile& profile, ImageSize size) {
  const ImageRule& rule = profile.image_rule;
  const bool is_known = profile.family == ModelFamily::Qwen2Vl ||
                        profile.family == ModelFamily::Qwen2_5Vl ||
                        profile.family == ModelFamily::Qwen3Vl;
  if (!is_known || rule.patch == 0 || rule.merge == 0) {
    return client_error(
        ErrorCode::Unsupported,
        "the router cannot count image tokens for models of type \"" + profile.model_type + "\"");
  }
  // The products of the checks fit in 64 bits, because each side has 32 bits.
  const std::uint64_t longer = std::max(size.width, size.height);
  const std::uint64_t shorter = std::min(size.width, size.height);
  if (shorter == 0) return client_error(ErrorCode::InvalidArgument, "a side of the image is 0");
  if (longer > shorter * kAspectRatioMax) return too_thin(size);
  if (longer * shorter > kAreaMax) return too_large(size);
  const Resized units = smart_resize(rule, size);
  const std::uint64_t patches = units.height * units.width * rule.merge * rule.merge;
  // The counts are 32-bit numbers, and the patches are the largest of them.
  if (patches > std::numeric_limits<std::uint32_t>::max()) return too_large(size);
  return ImageTokens{static_cast<std::uint32_t>(units.height * rule.merge),
                     static_cast<std::uint32_t>(units.width * rule.merge),
                     static_cast<std::uint32_t>(units.height * units.width)};
}

}  // namespace sightline::model
