// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/tokenizer/scanner.h"

#include "common/base/check.h"

#include "router/tokenizer/unicode.h"

namespace sightline::tokenizer {
namespace {

// A character with its class, or the end of the text.
struct Character {
  CharClass char_class = CharClass::Other;
  bool exists = false;
  std::uint32_t code_point = 0;
  std::size_t end = 0;
};

// Reads classes from a text and collects the NFC bits.
class Reader {
 public:
  Reader(std::string_view text, const std::uint8_t* table) : text_(text), table_(table) {}

  Character at(std::size_t offset) {
    if (offset >= text_.size()) return {CharClass::Other, false, 0, offset};
    const Decoded decoded = decode_utf8(text_.data() + offset);
    const std::uint8_t entry = table_[decoded.code_point];
    bits_ |= entry;
    return {static_cast<CharClass>(entry & kClassMask), true, decoded.code_point,
            offset + decoded.size_bytes};
  }

  // End of the longest run of one class from offset on.
  std::size_t run_end(std::size_t offset, CharClass char_class) {
    Character next = at(offset);
    while (next.exists && next.char_class == char_class) {
      offset = next.end;
      next = at(offset);
    }
    return offset;
  }

  [[nodiscard]] bool nfc_suspect() const { return (bits_ & kNfcSuspect) != 0; }

 private:
  std::string_view text_;
  const std::uint8_t* table_;
  std::uint8_t bits_ = 0;
};

// Case folding as the pattern's (?i:…) does it: U+017F is a small s too.
char folded(const Character& c) {
  if (c.code_point == 0x17F) return 's';
  if (c.code_point >= 'A' && c.code_point <= 'Z') return static_cast<char>(c.code_point + 32);
  return c.code_point < 0x80 ? static_cast<char>(c.code_point) : '\0';
}

// End of 's 't 're 've 'm 'll 'd, whose apostrophe is before `offset`; 0 if none of these.
std::size_t contraction_end(Reader& reader, std::size_t offset) {
  const Character first = reader.at(offset);
  if (!first.exists) return 0;
  const char a = folded(first);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return first.end;
  if (a != 'r' && a != 'v' && a != 'l') return 0;
  const Character second = reader.at(first.end);
  if (!second.exists) return 0;
  return folded(second) == (a == 'l' ? 'l' : 'e') ? second.end : 0;
}

// \s*[\r\n]+ | \s+(?!\S) | \s+ from begin on, where white space starts.
std::size_t white_space_end(Reader& reader, std::size_t begin) {
  std::size_t newline_end = 0;
  std::size_t last_begin = begin;
  std::size_t end = begin;
  Character next = reader.at(begin);
  while (next.exists &&
         (next.char_class == CharClass::Blank || next.char_class == CharClass::Newline)) {
    last_begin = end;
    end = next.end;
    if (next.char_class == CharClass::Newline) newline_end = end;
    next = reader.at(end);
  }
  if (newline_end != 0) return newline_end;
  return next.exists && last_begin > begin ? last_begin : end;
}

std::size_t word_end_at(Reader& reader, std::size_t begin) {
  const Character first = reader.at(begin);
  if (first.char_class == CharClass::Letter) return reader.run_end(first.end, CharClass::Letter);
  if (first.char_class == CharClass::Number) return first.end;
  if (first.code_point == '\'') {
    if (const std::size_t end = contraction_end(reader, first.end); end != 0) return end;
  }
  const Character second = reader.at(first.end);
  if (first.char_class != CharClass::Newline && second.exists &&
      second.char_class == CharClass::Letter) {
    return reader.run_end(second.end, CharClass::Letter);
  }
  const bool blank_before_others =
      first.code_point == ' ' && second.exists && second.char_class == CharClass::Other;
  if (first.char_class == CharClass::Other || blank_before_others) {
    return reader.run_end(reader.run_end(first.end, CharClass::Other), CharClass::Newline);
  }
  return white_space_end(reader, begin);
}

}  // namespace

Scanner::Scanner(std::string_view text) : text_(text), table_(char_table()) {
  SL_CHECK(text.size() < (std::size_t{1} << 32U));
}

std::size_t Scanner::word_end(std::size_t begin) {
  Reader reader(text_, table_);
  const std::size_t end = word_end_at(reader, begin);
  nfc_suspect_ = nfc_suspect_ || reader.nfc_suspect();
  return end;
}

std::size_t Scanner::next(std::span<std::uint32_t> ends) {
  std::size_t count = 0;
  while (count < ends.size() && at_ < text_.size()) {
    at_ = word_end(at_);
    ends[count++] = static_cast<std::uint32_t>(at_);
  }
  return count;
}

std::size_t next_safe_cut(std::string_view text, std::size_t from) {
  const std::uint8_t* table = char_table();
  const auto letter = static_cast<std::uint8_t>(CharClass::Letter);
  for (std::size_t at = text.find('\n', from); at < text.size(); at = text.find('\n', at + 1)) {
    if (at + 1 == text.size()) break;
    // Equal without any NFC bit: a letter that neither changes nor joins the newline.
    if (table[decode_utf8(text.data() + at + 1).code_point] == letter) return at + 1;
  }
  return text.size();
}

}  // namespace sightline::tokenizer
