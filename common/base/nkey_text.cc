// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/nkey_text.h"

#include <cstdint>

namespace sightline {
namespace {

constexpr std::string_view kBase32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

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

std::optional<Bytes> from_base32(std::string_view text) {
  Bytes bytes;
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::size_t value = kBase32.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    held = (held << 5U) | static_cast<std::uint32_t>(value);
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<std::uint8_t>(held >> bits));
    }
  }
  return bytes;
}

std::string to_base32(ByteView bytes) {
  std::string text;
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const std::uint8_t byte : bytes) {
    held = (held << 8U) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += kBase32[(held >> bits) & 31U];
    }
  }
  if (bits > 0) text += kBase32[(held << (5 - bits)) & 31U];
  return text;
}

void add_crc(Bytes& bytes) {
  const std::uint16_t crc = crc16(bytes);
  bytes.push_back(static_cast<std::uint8_t>(crc));
  bytes.push_back(static_cast<std::uint8_t>(crc >> 8U));
}

}  // namespace sightline
