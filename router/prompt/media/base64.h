// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/result.h"

namespace sightline::media {

// Upper bound of the bytes that text of this length decodes to.
constexpr std::size_t base64_bytes_max(std::size_t text_bytes) { return text_bytes / 4 * 3; }

// Decodes RFC 4648 base64 (standard alphabet, padding required) into out, whose size must be at
// least base64_bytes_max(text.size()). Gives the number of bytes written.
// Accepts exactly what vLLM 0.32 accepts (pybase64 1.5 with validate=True): no white space, no
// URL-safe alphabet, nothing after the padding; unused bits of the last digit may be set.
// Error: InvalidArgument with the position of the first character that is not base64.
Result<std::size_t> decode_base64(std::string_view text, std::span<std::uint8_t> out);

}  // namespace sightline::media
