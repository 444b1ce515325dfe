// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "common/base/bytes.h"

namespace sightline {
namespace {

struct CodePoints {
  std::uint32_t first;
  std::uint32_t last;
};

// Categories Cc, Cf, Zl and Zp of Unicode 15 beyond ASCII, and the noncharacters U+FFFE and U+FFFF.
constexpr std::array<CodePoints, 23> kUnprintable{
    {{0x80, 0x9F},       {0xAD, 0xAD},       {0x600, 0x605},     {0x61C, 0x61C},
     {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},
     {0x180E, 0x180E},   {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x2064},
     {0x2066, 0x206F},   {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD},
     {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A},
     {0xE0001, 0xE0001}, {0xE0020, 0xE007F}, {0xFFFE, 0xFFFF}}};

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: the first byte does not begin a UTF-8 character
};

bool is_printable_ascii(char c) { return c >= ' ' && c < 0x7F; }

// The text must not be empty.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t bytes = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (text.size() < bytes || !is_utf8(text.substr(0, bytes))) return {};
  std::uint32_t code = byte(0) & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) code = (code << 6U) | (byte(i) & 0x3FU);
  return {code, bytes};
}

bool is_printable(const Character& character) {
  if (character.bytes == 0) return false;
  const std::uint32_t code = character.code;
  if (code < 0x80) return is_printable_ascii(static_cast<char>(code));
  return std::none_of(kUnprintable.begin(), kUnprintable.end(), [code](const CodePoints& range) {
    return range.first <= code && code <= range.last;
  });
}

void append_escaped(std::string& out, char first, const Character& character) {
  // Most frequent, and more readable than \x0a and \x09.
  if (first == '\n' || first == '\t') {
    out += first == '\n' ? "\\n" : "\\t";
    return;
  }
  std::array<char, 16> text{};
  if (character.bytes <= 1) {
    std::snprintf(text.data(), text.size(), "\\x%02x", static_cast<std::uint8_t>(first));
  } else {
    std::snprintf(text.data(), text.size(), "\\u%04x", character.code);
  }
  out += text.data();
}

}  // namespace

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_of(text);
    if (!is_printable(character)) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

void append_printable(std::string& out, std::string_view text) {
  while (true) {
    // A fast path, because most text is printable ASCII.
    const auto plain_end = std::find_if_not(text.begin(), text.end(), is_printable_ascii);
    out.append(text.begin(), plain_end);
    text.remove_prefix(static_cast<std::size_t>(plain_end - text.begin()));
    if (text.empty()) return;
    const Character character = first_of(text);
    // A byte outside UTF-8 is escaped alone: the next byte may begin a character.
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    if (is_printable(character)) {
      out += text.substr(0, bytes);
    } else {
      append_escaped(out, text[0], character);
    }
    text.remove_prefix(bytes);
  }
}

}  // namespace sightline
