// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/bytes.h"

#include <simdjson.h>

namespace sightline {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string to_hex(ByteView bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4U]);
    text.push_back(kDigits[byte & 15U]);
  }
  return text;
}

std::string to_hex(std::uint64_t value) {
  std::uint8_t bytes[8];
  store_be64(bytes, value);
  return to_hex(ByteView(bytes));
}

std::optional<Bytes> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  Bytes bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit_of(text[i]);
    const int low = digit_of(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<std::uint8_t>(high * 16 + low));
  }
  return bytes;
}

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

std::string_view utf8_prefix(std::string_view text, std::size_t bytes_max) {
  text = text.substr(0, bytes_max);
  while (!is_utf8(text)) text.remove_suffix(1);
  return text;
}

}  // namespace sightline
