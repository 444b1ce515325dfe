// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"

namespace sightline {

// Bytes as digits of n bits each, the highest bit first: base32 and base64 of RFC 4648, without
// padding. The alphabet has 2^n characters, with n from 1 to 8. Pure.
std::string to_digits(ByteView bytes, std::string_view alphabet);
// The reverse of to_digits(). Ignores last bits that fill no byte. Returns nothing if a character
// is outside the alphabet.
[[nodiscard]] std::optional<Bytes> from_digits(std::string_view text, std::string_view alphabet);

}  // namespace sightline
