// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>
#include <variant>

#include "common/base/result.h"

namespace sightline::media {

// An image inside the request: data:<mime>;base64,<payload>. vLLM and the router ignore the
// declared type. They detect the format from the bytes.
struct InlineImage {
  // May be empty.
  std::string_view mime;
  // Base64 text, not yet checked.
  std::string_view payload;
};

// An image that the router must download.
struct RemoteImage {
  // An http or https URL as the client wrote it.
  std::string_view url;
};

// Views into the text of classify_url(), which must live longer.
using ImageSource = std::variant<InlineImage, RemoteImage>;

// The most bytes of an http or https URL. The limit has the name media-url-bytes-max and is fixed.
inline constexpr std::size_t kUrlBytesMax = 8192;

// Classifies an image_url as vLLM 0.32 does. The case of the scheme does not matter. A data URL
// must have ";base64" directly before its first comma.
//
// Errors, blamed on the client:
// - InvalidArgument for every other scheme, including file: and ftp:, and for data URLs that are
//   not base64.
// - TooLarge for an http or https URL above kUrlBytesMax.
Result<ImageSource> classify_url(std::string_view url);

}  // namespace sightline::media
