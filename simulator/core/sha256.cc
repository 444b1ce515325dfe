// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/sha256.h"

#include <openssl/sha.h>

namespace sightline::core {

std::array<std::uint8_t, 32> sha256(ByteView bytes) {
  std::array<std::uint8_t, 32> digest{};
  SHA256(bytes.data(), bytes.size(), digest.data());
  return digest;
}

}  // namespace sightline::core
