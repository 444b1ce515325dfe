// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/digits.h"

#include <bit>
#include <cstdint>

namespace sightline {
namespace {

// The alphabet has 2^n characters, so the size gives n.
int bits_of(std::string_view alphabet) { return std::countr_zero(alphabet.size()); }

}  // namespace

std::string to_digits(ByteView bytes, std::string_view alphabet) {
  const int digit_bits = bits_of(alphabet);
  const std::uint32_t mask = static_cast<std::uint32_t>(alphabet.size()) - 1;
  std::string text;
  std::uint32_t held = 0;
  int bits = 0;
  for (const std::uint8_t byte : bytes) {
    held = (held << 8U) | byte;
    bits += 8;
    while (bits >= digit_bits) {
      bits -= digit_bits;
      // Bits above the mask stay in `held`. Later shifts push them out.
      text += alphabet[(held >> bits) & mask];
    }
  }
  if (bits > 0) text += alphabet[(held << (digit_bits - bits)) & mask];
  return text;
}

std::optional<Bytes> from_digits(std::string_view text, std::string_view alphabet) {
  const int digit_bits = bits_of(alphabet);
  Bytes bytes;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : text) {
    const std::size_t value = alphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    held = (held << digit_bits) | static_cast<std::uint32_t>(value);
    bits += digit_bits;
    if (bits >= 8) {
      bits -= 8;
      bytes.push_back(static_cast<std::uint8_t>(held >> bits));
    }
  }
  return bytes;
}

}  // namespace sightline
