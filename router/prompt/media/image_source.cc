// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/media/image_source.h"

#include <algorithm>
#include <string>

namespace sightline::media {
namespace {

// Compares without case. `prefix` must be in lower case.
bool starts_with_any_case(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(), [](char want, char seen) {
           return want == (seen >= 'A' && seen <= 'Z' ? static_cast<char>(seen + 32) : seen);
         });
}

Error invalid(std::string message) {
  return client_error(ErrorCode::InvalidArgument, std::move(message));
}

// Reads a data URL from behind "data:".
Result<ImageSource> read_data_url(std::string_view rest) {
  const std::size_t comma = rest.find(',');
  if (comma == std::string_view::npos) {
    return invalid("the data URL has no ',': write data:image/png;base64,<base64 text>");
  }
  const std::string_view header = rest.substr(0, comma);
  // Parameters may precede "base64". Only the last one says how the payload is coded.
  const std::size_t last = header.rfind(';');
  if (last == std::string_view::npos || header.substr(last + 1) != "base64") {
    return invalid(
        "only base64 data URLs are supported: write data:image/png;base64,<base64 text>");
  }
  const std::string_view mime = header.substr(0, header.find(';'));
  return ImageSource(InlineImage{mime, rest.substr(comma + 1)});
}

// The scheme of a URL for an error message, or an empty text. Other text before a ':' is not shown.
std::string_view scheme_of(std::string_view url) {
  constexpr std::size_t kSchemeBytesMax = 20;
  const std::size_t colon = url.substr(0, kSchemeBytesMax).find(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view scheme = url.substr(0, colon);
  const bool is_scheme = std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.';
  });
  return is_scheme ? scheme : std::string_view{};
}

}  // namespace

Result<ImageSource> classify_url(std::string_view url) {
  // A data URL has no length limit here. The image and the body have their own limits.
  if (starts_with_any_case(url, "data:")) return read_data_url(url.substr(5));
  if (starts_with_any_case(url, "http://") || starts_with_any_case(url, "https://")) {
    if (url.size() > kUrlBytesMax) {
      return limit_error(ErrorCode::TooLarge, "media-url-bytes-max",
                         "the image URL is longer than " + std::to_string(kUrlBytesMax) +
                             " bytes (media-url-bytes-max, fixed)");
    }
    return ImageSource(RemoteImage{url});
  }
  const std::string_view scheme = scheme_of(url);
  const std::string subject =
      scheme.empty() ? "an image URL without a scheme is"
                     : "image URLs with the scheme \"" + std::string(scheme) + "\" are";
  return invalid(subject + " not supported: use an http, https or data URL");
}

}  // namespace sightline::media
