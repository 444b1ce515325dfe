// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/nkey_text.h"

#include <cstdint>

#include "common/base/digits.h"

namespace sightline {
namespace {

constexpr std::string_view kBase32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

// CRC-16/XMODEM: polynomial 0x1021, initial value 0, as nkeys computes it.
std::uint16_t crc16(ByteView bytes) {
  std::uint16_t crc = 0;
  for (const std::uint8_t byte : bytes) {
    crc = static_cast<std::uint16_t>(crc ^ (byte << 8U));
    for (int bit = 0; bit < 8; ++bit) {
      const bool is_set = (crc & 0x8000U) != 0;
      crc = static_cast<std::uint16_t>(crc << 1U);
      if (is_set) crc ^= 0x1021U;
    }
  }
  return crc;
}

}  // namespace

std::optional<Bytes> from_base32(std::string_view text) { return from_digits(text, kBase32); }

std::string to_base32(ByteView bytes) { return to_digits(bytes, kBase32); }

void add_crc(Bytes& bytes) {
  const std::uint16_t crc = crc16(bytes);
  bytes.push_back(static_cast<std::uint8_t>(crc));
  bytes.push_back(static_cast<std::uint8_t>(crc >> 8U));
}

}  // namespace sightline
