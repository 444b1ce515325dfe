// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/base64.h"

#include <cstddef>
#include <cstdint>

namespace sightline {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(ByteView bytes) {
  std::string text;
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const std::uint8_t byte : bytes) {
    held = (held << 8U) | byte;
    for (bits += 8; bits >= 6;) {
      bits -= 6;
      text += kDigits[(held >> bits) & 63U];
    }
  }
  if (bits > 0) text += kDigits[(held << (6 - bits)) & 63U];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t held = 0;
  unsigned bits = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const std::size_t value = kDigits.find(c);
    if (value == std::string_view::npos || padding > 0) return std::nullopt;
    held = (held << 6U) | static_cast<std::uint32_t>(value);
    ++digits;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(held >> bits);
  }
  if ((digits + padding) % 4 != 0 || padding > 2) return std::nullopt;
  return bytes;
}

}  // namespace sightline
