// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/result.h"

namespace sightline::media {

// The most bytes that a base64 text of this length decodes to.
constexpr std::size_t base64_bytes_max(std::size_t text_bytes) { return text_bytes / 4 * 3; }

// Decodes base64 of RFC 4648 (standard alphabet, with padding) into `out`. The size of `out` must
// be at least base64_bytes_max(text.size()). Returns the number of bytes written.
//
// Accepts exactly the texts that vLLM 0.32 accepts (pybase64 1.5 with validate=True). White space,
// the URL-safe alphabet and text after the padding are errors. Unused bits of the last digit may be
// set.
//
// Error: InvalidArgument, blamed on the client. The message names the position of the first invalid
// character, or the length if it is no multiple of 4.
Result<std::size_t> decode_base64(std::string_view text, std::span<std::uint8_t> out);

}  // namespace sightline::media
