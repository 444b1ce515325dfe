// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/bytes.h"

// How the keys of NATS users are written (github.com/nats-io/nkeys): bytes with their CRC behind
// them, in base32 (RFC 4648) without padding. Pure.
namespace sightline {

// Adds the CRC-16/XMODEM of what is there, low byte first.
void add_crc(Bytes& bytes);
// Bits that fill no byte are left out. Nothing: a character is none of the alphabet's.
std::optional<Bytes> from_base32(std::string_view text);
std::string to_base32(ByteView bytes);

}  // namespace sightline
