// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"

namespace sightline {

// Base64 of RFC 4648, with the standard alphabet and padding. For small texts, as in Secrets and
// kubeconfigs: both functions copy. Pure.
std::string to_base64(ByteView bytes);
// Skips line ends. Returns nothing if the length is no multiple of 4, or if a character is outside
// the alphabet.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace sightline
