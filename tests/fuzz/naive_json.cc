// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/fuzz/naive_json.h"

#include <algorithm>
#include <cstdint>

#include "common/base/bytes.h"

namespace sightline::fuzz {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<std::uint32_t> hexadecimal(std::string_view digits) {
  std::uint32_t value = 0;
  for (const char c : digits) {
    value <<= 4U;
    if (is_digit(c)) {
      value |= static_cast<std::uint32_t>(c - '0');
    } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
      value |= static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

class Reader {
 public:
  Reader(std::string_view text, std::size_t depth_max) : text_(text), depth_max_(depth_max) {}

  bool document() {
    blanks();
    facts.container = next() == '{' || next() == '[';
    if (!value(0)) return false;
    blanks();
    return at_ == text_.size();
  }

  JsonFacts facts;

 private:
  [[nodiscard]] char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool skip(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }

  bool value(std::size_t depth) {
    switch (next()) {
      case '{':
        return members('}', depth + 1);
      case '[':
        return members(']', depth + 1);
      case '"':
        return string();
      case 't':
        return skip("true");
      case 'f':
        return skip("false");
      case 'n':
        return skip("null");
      default:
        return number();
    }
  }

  bool members(char end, std::size_t depth) {
    facts.depth = std::max(facts.depth, depth);
    if (depth > depth_max_) return false;
    const std::string_view close(&end, 1);
    ++at_;
    blanks();
    if (skip(close)) return true;
    do {
      blanks();
      if (end == '}' && !name()) return false;
      if (!value(depth)) return false;
      blanks();
    } while (skip(","));
    return skip(close);
  }

  bool name() {
    if (!string()) return false;
    blanks();
    if (!skip(":")) return false;
    blanks();
    return true;
  }

  bool string() {
    if (!skip("\"")) return false;
    while (at_ < text_.size() && next() != '"') {
      if (static_cast<unsigned char>(next()) < 0x20) return false;
      if (next() != '\\') {
        ++at_;
      } else if (!escape()) {
        return false;
      }
    }
    return skip("\"");
  }

  bool escape() {
    ++at_;
    if (next() != 'u') return at_ < text_.size() && short_escape();
    const auto unit = code_unit();
    if (!unit) return false;
    if (*unit < 0xD800 || *unit > 0xDFFF) return true;
    const bool paired = *unit < 0xDC00 && skip("\\");
    const bool escapes = paired && next() == 'u';
    const auto second = escapes ? code_unit() : std::optional<std::uint32_t>(0);
    if (!second) return false;
    if (paired && !escapes) --at_;  // the backslash begins another escape
    facts.lone_surrogate |= *second < 0xDC00 || *second > 0xDFFF;
    return true;
  }

  bool short_escape() { return std::string_view("\"\\/bfnrt").find(text_[at_++]) != text_.npos; }

  std::optional<std::uint32_t> code_unit() {
    const auto digits = text_.substr(at_ + 1, 4);
    if (digits.size() < 4) return std::nullopt;
    const auto unit = hexadecimal(digits);
    if (unit) at_ += 5;
    return unit;
  }

  bool digits() {
    const auto begin = at_;
    while (is_digit(next())) ++at_;
    return at_ > begin;
  }

  bool number() {
    const auto begin = at_;
    skip("-");
    if (!skip("0") && !digits()) return false;
    if (skip(".") && !digits()) return false;
    if (skip("e") || skip("E")) {
      if (!skip("+")) skip("-");
      if (!digits()) return false;
      facts.long_number |= at_ - begin > 4;
    }
    facts.long_number |= at_ - begin > 250;
    return true;
  }

  std::string_view text_;
  std::size_t depth_max_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<JsonFacts> read_naive_json(std::string_view text, std::size_t depth_max) {
  if (!is_utf8(text)) return std::nullopt;
  Reader reader(text, depth_max);
  if (!reader.document()) return std::nullopt;
  return reader.facts;
}

}  // namespace sightline::fuzz
