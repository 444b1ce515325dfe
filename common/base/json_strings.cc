// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/json_strings.h"

#include <array>
#include <charconv>
#include <cstdint>

#include "common/base/json.h"

namespace sightline::json {
namespace {

// The character that a backslash and this character mean. 0: no escape of one character.
constexpr std::array<char, 256> kPlainOf = [] {
  std::array<char, 256> plain{};
  plain['"'] = '"';
  plain['\\'] = '\\';
  plain['/'] = '/';
  plain['b'] = '\b';
  plain['f'] = '\f';
  plain['n'] = '\n';
  plain['r'] = '\r';
  plain['t'] = '\t';
  return plain;
}();

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6U));
    out += static_cast<char>(0x80 | (c & 63U));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12U));
    out += static_cast<char>(0x80 | ((c >> 6U) & 63U));
    out += static_cast<char>(0x80 | (c & 63U));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18U));
    out += static_cast<char>(0x80 | ((c >> 12U) & 63U));
    out += static_cast<char>(0x80 | ((c >> 6U) & 63U));
    out += static_cast<char>(0x80 | (c & 63U));
  }
}

// The value of four hexadecimal digits at position i of raw. -1 if they are not there.
std::int32_t hex4(std::string_view raw, std::size_t i) {
  if (i + 4 > raw.size()) return -1;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(raw.data() + i, raw.data() + i + 4, value, 16);
  return error == std::errc{} && end == raw.data() + i + 4 ? static_cast<std::int32_t>(value) : -1;
}

// Appends one \uXXXX escape, or a surrogate pair of two, that starts at raw[i] == 'u'. Returns the
// number of characters read after the backslash, 0 if malformed. Refuses lone surrogates, because
// UTF-8 cannot express them.
std::size_t append_unicode_escape(std::string& out, std::string_view raw, std::size_t i) {
  const std::int32_t first = hex4(raw, i + 1);
  if (first < 0 || (first >= 0xDC00 && first < 0xE000)) return 0;
  if (first < 0xD800 || first >= 0xE000) {
    append_utf8(out, static_cast<std::uint32_t>(first));
    return 5;
  }
  if (raw.substr(i + 5, 2) != "\\u") return 0;
  const std::int32_t second = hex4(raw, i + 7);
  if (second < 0xDC00 || second >= 0xE000) return 0;
  append_utf8(out, 0x10000U + ((static_cast<std::uint32_t>(first) - 0xD800U) << 10U) +
                       (static_cast<std::uint32_t>(second) - 0xDC00U));
  return 11;
}

}  // namespace

std::optional<std::size_t> append_unescaped(std::string& out, std::string_view raw) {
  std::size_t copied = 0;
  for (std::size_t at = raw.find('\\'); at != std::string_view::npos; at = raw.find('\\', copied)) {
    out.append(raw, copied, at - copied);
    const char c = at + 1 < raw.size() ? raw[at + 1] : '\0';
    std::size_t used = 1;
    if (const char plain = kPlainOf[static_cast<unsigned char>(c)]; plain != '\0') {
      out += plain;
    } else {
      used = c == 'u' ? append_unicode_escape(out, raw, at + 1) : 0;
      if (used == 0) return at;
    }
    copied = at + 1 + used;
  }
  out.append(raw, copied);
  return std::nullopt;
}

void append_quoted(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        // RFC 8259 section 7 demands escapes for control characters. All other text stays UTF-8.
        if (static_cast<unsigned char>(c) < ' ') {
          out += "\\u00";
          out += kHex[static_cast<unsigned char>(c) >> 4U];
          out += kHex[static_cast<unsigned char>(c) & 15U];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

std::string to_quoted(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_quoted(out, text);
  return out;
}

}  // namespace sightline::json
