// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/text.h"

#include <algorithm>

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

namespace sightline::python {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

icu::UnicodeString to_icu(std::string_view text) {
  return icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
}

std::string from_icu(const icu::UnicodeString& text) {
  std::string out;
  text.toUTF8String(out);
  return out;
}

// Returns the byte offset of the last code point before `end`.
std::size_t previous_offset(std::string_view text, std::size_t end) {
  // A code point has at most 4 bytes.
  std::size_t at = end - 1;
  while (at > 0 && end - at < 4 && is_continuation(text[at])) --at;
  return at;
}

// Returns one code point in title case. Some become several code points (ß -> Ss).
std::string title_of(std::string_view character) {
  std::size_t offset = 0;
  const char32_t c = next_code_point(character, offset);
  const auto simple = static_cast<char32_t>(u_totitle(static_cast<UChar32>(c)));
  std::string out;
  if (simple != c) {
    append_code_point(out, simple);
    return out;
  }
  // Without a simple mapping, the full upper case is used. All but its first letter become lower
  // case.
  const std::string upper = to_upper(character);
  if (upper == character) return upper;
  offset = 0;
  append_code_point(out, next_code_point(upper, offset));
  return out + to_lower(std::string_view(upper).substr(offset));
}

bool is_cased(char32_t c) { return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CASED) != 0; }

std::vector<std::string_view> split_at_spaces(std::string_view text, std::int64_t splits_max) {
  std::vector<std::string_view> parts;
  text = strip(text, Side::Left);
  while (!text.empty()) {
    if (splits_max >= 0 && static_cast<std::int64_t>(parts.size()) == splits_max) {
      parts.push_back(text);
      break;
    }
    std::size_t end = 0;
    std::size_t next = 0;
    while (next < text.size() && !is_space(next_code_point(text, next))) end = next;
    parts.push_back(text.substr(0, end));
    text = strip(text.substr(end), Side::Left);
  }
  return parts;
}

// The parts are collected from the right end,
// and reversed at the end.
std::vector<std::string_view> split_right_at_spaces(std::string_view text,
                                                    std::int64_t splits_max) {
  std::vector<std::string_view> parts;
  text = strip(text, Side::Right);
  while (!text.empty()) {
    if (splits_max >= 0 && static_cast<std::int64_t>(parts.size()) == splits_max) {
      parts.push_back(text);
      break;
    }
    std::size_t begin = text.size();
    while (begin > 0) {
      std::size_t at = previous_offset(text, begin);
      const std::size_t start = at;
      // The parts end before white space. This space is stripped below.
      if (is_space(next_code_point(text, at))) break;
      begin = start;
    }
    parts.push_back(text.substr(begin));
    text = strip(text.substr(0, begin), Side::Right);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

// The line ends of Python's splitlines().
bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool belongs(char32_t c, CharacterClass wanted) {
  const auto point = static_cast<UChar32>(c);
  const auto is_numeric = [&] {
    const auto type = u_getIntPropertyValue(point, UCHAR_NUMERIC_TYPE);
    return type != U_NT_NONE;
  };
  switch (wanted) {
    case CharacterClass::Alphabetic:
      return (U_GET_GC_MASK(point) & U_GC_L_MASK) != 0;
    case CharacterClass::Decimal:
      return u_getIntPropertyValue(point, UCHAR_NUMERIC_TYPE) == U_NT_DECIMAL;
    case CharacterClass::Digit: {
      const auto type = u_getIntPropertyValue(point, UCHAR_NUMERIC_TYPE);
      return type == U_NT_DECIMAL || type == U_NT_DIGIT;
    }
    case CharacterClass::Numeric:
      return is_numeric();
    case CharacterClass::Alphanumeric:
      return (U_GET_GC_MASK(point) & U_GC_L_MASK) != 0 || is_numeric();
    case CharacterClass::Space:
      return is_space(c);
  }
  return false;
}

// Returns whether a text has a cased character, and only characters of this case.
bool has_only_case(std::string_view text, bool upper) {
  bool found = false;
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<UChar32>(next_code_point(text, at));
    if (u_isUUppercase(c) != 0 || u_istitle(c) != 0 || u_isULowercase(c) != 0) {
      const bool fits = upper ? u_isUUppercase(c) != 0 : u_isULowercase(c) != 0;
      if (!fits) return false;
      found = true;
    }
  }
  return found;
}

}  // namespace

std::size_t length_of(std::string_view text) {
  // Each code point has exactly one byte besides its continuation bytes.
  return text.size() -
         static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_continuation));
}

std::size_t offset_of(std::string_view text, std::size_t index) {
  std::size_t offset = 0;
  while (offset < text.size()) {
    if (!is_continuation(text[offset]) && index-- == 0) return offset;
    ++offset;
  }
  return text.size();
}

char32_t next_code_point(std::string_view text, std::size_t& offset) {
  const auto lead = static_cast<unsigned char>(text[offset++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  char32_t c = lead & (0x3FU >> static_cast<unsigned>(more));
  // A truncated sequence ends early, and nothing outside of the text is read.
  for (int i = 0; i < more && offset < text.size() && is_continuation(text[offset]); ++i) {
    c = (c << 6U) | (static_cast<unsigned char>(text[offset++]) & 0x3FU);
  }
  return c;
}

void append_code_point(std::string& out, char32_t c) {
  const auto byte = [&out](char32_t value) { out += static_cast<char>(value); };
  const auto tail = [&](unsigned shift) { byte(0x80U | ((c >> shift) & 0x3FU)); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xC0U | (c >> 6U));
    tail(0);
  } else if (c < 0x10000) {
    byte(0xE0U | (c >> 12U));
    tail(6);
    tail(0);
  } else {
    byte(0xF0U | (c >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

// Python's rule: bidirectional classes WS, B and S, and the category Zs.
bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const auto mask = U_GET_GC_MASK(static_cast<UChar32>(c));
  return (mask & (U_GC_C_MASK | U_GC_Z_MASK)) == 0;
}

std::string_view strip(std::string_view text, Side side,
                       std::optional<std::string_view> characters) {
  // A character of several bytes is compared as a whole.
  const auto matches = [&](std::string_view character) {
    if (characters) return characters->find(character) != std::string_view::npos;
    std::size_t at = 0;
    return is_space(next_code_point(character, at));
  };
  while (side != Side::Right && !text.empty()) {
    std::size_t end = 0;
    next_code_point(text, end);
    if (!matches(text.substr(0, end))) break;
    text.remove_prefix(end);
  }
  while (side != Side::Left && !text.empty()) {
    const std::size_t begin = previous_offset(text, text.size());
    if (!matches(text.substr(begin))) break;
    text = text.substr(0, begin);
  }
  return text;
}

std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator,
                                    std::int64_t splits_max) {
  if (!separator) return split_at_spaces(text, splits_max);
  std::vector<std::string_view> parts;
  while (splits_max < 0 || static_cast<std::int64_t>(parts.size()) < splits_max) {
    const std::size_t at = text.find(*separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator->size());
  }
  parts.push_back(text);
  return parts;
}

std::vector<std::string_view> split_right(std::string_view text,
                                          std::optional<std::string_view> separator,
                                          std::int64_t splits_max) {
  if (!separator) return split_right_at_spaces(text, splits_max);
  std::vector<std::string_view> parts;
  while (splits_max < 0 || static_cast<std::int64_t>(parts.size()) < splits_max) {
    const std::size_t at = text.rfind(*separator);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(at + separator->size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at;
    const char32_t c = next_code_point(text, at);
    if (!is_line_end(c)) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(begin, (keep_ends ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string replace(std::string_view text, std::string_view from, std::string_view to,
                    std::int64_t replacements_max) {
  std::string out;
  std::size_t at = 0;
  while (replacements_max != 0) {
    const std::size_t found = text.find(from, at);
    if (found == std::string_view::npos) break;
    out.append(text, at, found - at);
    out += to;
    at = found + from.size();
    --replacements_max;
    if (!from.empty()) continue;
    // An empty `from` also matches at the end of the text.
    if (at >= text.size()) return out;
    const std::size_t begin = at;
    next_code_point(text, at);
    out.append(text, begin, at - begin);
  }
  return out.append(text.substr(at));
}

std::size_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) return length_of(text) + 1;
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

std::string to_upper(std::string_view text) {
  // The root locale has the mappings without special rules of a language, as Python has them.
  return from_icu(to_icu(text).toUpper(icu::Locale::getRoot()));
}

std::string to_lower(std::string_view text) {
  return from_icu(to_icu(text).toLower(icu::Locale::getRoot()));
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  std::size_t end = 0;
  next_code_point(text, end);
  // The whole text is lowered first. The form of a final sigma depends on the characters before it.
  const std::string lower = to_lower(text);
  std::size_t lower_end = 0;
  const std::string first_lower = to_lower(text.substr(0, end));
  lower_end = first_lower.size();
  return title_of(text.substr(0, end)) + lower.substr(std::min(lower_end, lower.size()));
}

std::string title(std::string_view text) {
  std::string out;
  bool is_inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(text, at);
    const std::string_view character = text.substr(begin, at - begin);
    // Letters after a cased character are inside of a word.
    out += is_inside ? to_lower(character) : title_of(character);
    is_inside = is_cased(c);
  }
  return out;
}

bool consists_of(std::string_view text, CharacterClass wanted) {
  if (text.empty()) return false;
  for (std::size_t at = 0; at < text.size();) {
    if (!belongs(next_code_point(text, at), wanted)) return false;
  }
  return true;
}

bool is_upper(std::string_view text) { return has_only_case(text, true); }
bool is_lower(std::string_view text) { return has_only_case(text, false); }

}  // namespace sightline::python
