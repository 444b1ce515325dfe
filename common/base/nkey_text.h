// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"

// The text form of NATS user keys (github.com/nats-io/nkeys): bytes and their CRC, in base32 (RFC
// 4648) without padding. Pure.
namespace sightline {

// Appends the CRC-16/XMODEM of the bytes, low byte first.
void add_crc(Bytes& bytes);
// Ignores last bits that fill no byte. Returns nothing if a character is outside the alphabet. Does
// not check the CRC.
std::optional<Bytes> from_base32(std::string_view text);
std::string to_base32(ByteView bytes);

}  // namespace sightline
