// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstdint>

#include "common/base/bytes.h"

namespace sightline::core {

// Returns the SHA-256 (FIPS 180-4) of the bytes.
std::array<std::uint8_t, 32> sha256(ByteView bytes);

}  // namespace sightline::core
