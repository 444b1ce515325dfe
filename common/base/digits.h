// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"

namespace sightline {

// Bytes written as digits of 2^n values each, the highest bit first, as RFC 4648 has it: base32 and
// base64 without their padding. The alphabet has 2^n characters, n from 1 to 8. Pure.

std::string to_digits(ByteView bytes, std::string_view alphabet);
// Bits that fill no byte are left out. Nothing: a character is none of the alphabet's.
[[nodiscard]] std::optional<Bytes> from_digits(std::string_view text, std::string_view alphabet);

}  // namespace sightline
