// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string_view>
#include <variant>

#include "common/base/result.h"

namespace sightline::media {

// An image within the request: data:<mime>;base64,<payload>. The declared type is not looked at,
// neither by vLLM nor here: the bytes decide.
struct InlineImage {
  std::string_view mime;     // may be empty
  std::string_view payload;  // base64 text, not yet checked
};

// An image to be downloaded.
struct RemoteImage {
  std::string_view url;  // http or https, as the client wrote it
};

// Views of the text given to classify_url, which must outlive it.
using ImageSource = std::variant<InlineImage, RemoteImage>;

// Longest http(s) URL that is followed, in bytes.
inline constexpr std::size_t kUrlBytesMax = 8192;

// Sorts an image_url as vLLM 0.32 does: the scheme is read without regard to case; a data URL
// has exactly "<mime>;base64" before its first comma.
// Errors: InvalidArgument for every other scheme (file: and ftp: included) and for data URLs that
// are not base64, TooLarge for an overlong http(s) URL.
Result<ImageSource> classify_url(std::string_view url);

}  // namespace sightline::media
