// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/scanner.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>

#include "common/base/check.h"

#include "router/prompt/tokenizer/unicode.h"

namespace sightline::tokenizer {
namespace {

// A character and its class, or the end of the text.
struct Character {
  CharClass char_class = CharClass::Other;
  bool exists = false;
  std::uint32_t code_point = 0;
  std::size_t end = 0;
};

// Reads the classes of characters and collects their NFC bits.
class CharacterReader {
 public:
  CharacterReader(std::string_view text, const std::uint8_t* table) : text_(text), table_(table) {}

  Character at(std::size_t offset) {
    if (offset >= text_.size()) return {CharClass::Other, false, 0, offset};
    const Decoded decoded = decode_utf8(text_.data() + offset);
    const std::uint8_t entry = table_[decoded.code_point];
    bits_ |= entry;
    return {static_cast<CharClass>(entry & kClassMask), true, decoded.code_point,
            offset + decoded.size_bytes};
  }

  // Returns the end of the run of one class that begins at `offset`.
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

// Folds case as (?i:…) of the pattern does. U+017F also folds to a small s.
char folded(const Character& c) {
  if (c.code_point == 0x17F) return 's';
  if (c.code_point >= 'A' && c.code_point <= 'Z') return static_cast<char>(c.code_point + 32);
  return c.code_point < 0x80 ? static_cast<char>(c.code_point) : '\0';
}

// Returns the end of 's 't 're 've 'm 'll 'd, or 0. The apostrophe is before `offset`.
std::size_t contraction_end(CharacterReader& reader, std::size_t offset) {
  const Character first = reader.at(offset);
  if (!first.exists) return 0;
  const char a = folded(first);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return first.end;
  if (a != 'r' && a != 'v' && a != 'l') return 0;
  const Character second = reader.at(first.end);
  if (!second.exists) return 0;
  return folded(second) == (a == 'l' ? 'l' : 'e') ? second.end : 0;
}

// Matches \s*[\r\n]+ | \s+(?!\S) | \s+ at `begin`, where white space starts.
std::size_t white_space_end(CharacterReader& reader, std::size_t begin) {
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
  // The first alternative ends after the last newline. The second leaves the last blank to the next
  // word.
  if (newline_end != 0) return newline_end;
  return next.exists && last_begin > begin ? last_begin : end;
}

// Matches the alternatives of kQwenPattern in their order, at any character.
std::size_t word_end_at(CharacterReader& reader, std::size_t begin) {
  const Character first = reader.at(begin);
  if (first.char_class == CharClass::Letter) return reader.run_end(first.end, CharClass::Letter);
  if (first.char_class == CharClass::Number) return first.end;
  // A contraction comes first in the pattern. It has priority over an apostrophe before letters.
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
    // Newlines after other characters belong to their word.
    return reader.run_end(reader.run_end(first.end, CharClass::Other), CharClass::Newline);
  }
  return white_space_end(reader, begin);
}

// The classes of 64 characters, one bit each. The first character has the lowest bit. Characters
// that are not `valid` are not ASCII or are behind the end of the text. Their classes are unknown.
struct Window {
  std::uint64_t valid = 0;
  std::uint64_t letters = 0;
  std::uint64_t numbers = 0;
  std::uint64_t blanks = 0;  // spaces included
  std::uint64_t newlines = 0;
  // U+0020.
  std::uint64_t spaces = 0;
  std::uint64_t apostrophes = 0;
};
constexpr std::size_t kWindowBytes = 64;

#ifdef __AVX2__
// Finds the classes of ASCII bytes by two table look-ups, one for each half of the byte. A byte has
// a class if both look-ups give its bit. Letters have two bits, because A..O and P..Z have
// different upper halves.
constexpr char kLetterBit = 1, kLetter2Bit = 2, kNumberBit = 4, kControlBlankBit = 8;
constexpr char kNewlineBit = 16, kSpaceBit = 32, kApostropheBit = 64;

__m256i class_bits(__m256i bytes) {
  constexpr char kA = kLetterBit, kB = kLetter2Bit, kN = kNumberBit;
  const __m256i low_table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(kB | kN | kSpaceBit, kA | kB | kN, kA | kB | kN, kA | kB | kN, kA | kB | kN,
                    kA | kB | kN, kA | kB | kN, kA | kB | kN | kApostropheBit, kA | kB | kN,
                    kA | kB | kN | kControlBlankBit, kA | kB | kNewlineBit, kA | kControlBlankBit,
                    kA | kControlBlankBit, kA | kNewlineBit, kA, kA));
  const __m256i high_table = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(kControlBlankBit | kNewlineBit, 0, kSpaceBit | kApostropheBit, kN, kA, kB, kA,
                    kB, 0, 0, 0, 0, 0, 0, 0, 0));
  const __m256i half = _mm256_set1_epi8(0x0F);
  const __m256i low = _mm256_and_si256(bytes, half);
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half);
  return _mm256_and_si256(_mm256_shuffle_epi8(low_table, low),
                          _mm256_shuffle_epi8(high_table, high));
}

// Returns the window of the text at p, of which size_bytes are left.
Window window_at(const char* p, std::size_t size_bytes) {
  std::array<char, kWindowBytes> padded;
  const std::size_t size = std::min(size_bytes, kWindowBytes);
  // A load of 64 bytes must not read behind the end of the text.
  if (size < kWindowBytes) {
    padded.fill('\0');
    std::copy_n(p, size, padded.begin());
    p = padded.data();
  }
  const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  const __m256i first_bits = class_bits(first);
  const __m256i second_bits = class_bits(second);
  const auto top_bits = [](__m256i low, __m256i high) {
    return std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(low))} |
           (std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(high))} << 32U);
  };
  // Shifts the wanted bit to the top of its byte, where movemask reads it.
  const auto bits = [&](int shift) {
    return top_bits(_mm256_slli_epi16(first_bits, shift), _mm256_slli_epi16(second_bits, shift));
  };
  const auto foreign = static_cast<unsigned>(std::countr_zero(top_bits(first, second)));
  const std::size_t count = std::min<std::size_t>(foreign, size);
  const std::uint64_t valid = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  const std::uint64_t spaces = bits(2) & valid;
  return {valid,           (bits(7) | bits(6)) & valid,
          bits(5) & valid, (bits(4) & valid) | spaces,
          bits(3) & valid, spaces,
          bits(1) & valid};
}
#else
Window window_at(const char* p, std::size_t size_bytes) {
  const std::uint8_t* table = char_table();
  Window w;
  for (std::size_t i = 0; i < std::min(size_bytes, kWindowBytes); ++i) {
    const auto byte = static_cast<std::uint8_t>(p[i]);
    if (byte >= 0x80) break;
    const std::uint64_t bit = std::uint64_t{1} << i;
    const auto char_class = static_cast<CharClass>(table[byte] & kClassMask);
    w.valid |= bit;
    w.letters |= char_class == CharClass::Letter ? bit : 0;
    w.numbers |= char_class == CharClass::Number ? bit : 0;
    w.blanks |= char_class == CharClass::Blank ? bit : 0;
    w.newlines |= char_class == CharClass::Newline ? bit : 0;
    w.spaces |= byte == ' ' ? bit : 0;
    w.apostrophes |= byte == '\'' ? bit : 0;
  }
  return w;
}
#endif

// Returns the ends of contractions. A letter after 's, 't, … starts a new word.
std::uint64_t after_contractions(std::uint64_t apostrophes, std::uint64_t valid, const char* p) {
  std::uint64_t starts = 0;
  for (; apostrophes != 0; apostrophes &= apostrophes - 1) {
    const auto at = static_cast<unsigned>(std::countr_zero(apostrophes));
    // Setting this bit makes letters small. Other characters do not become letters by it.
    const char a = static_cast<char>(p[at + 1] | 0x20);
    unsigned size = a == 's' || a == 't' || a == 'm' || a == 'd' ? 2 : 0;
    if ((a == 'r' || a == 'v' || a == 'l') && at + 2 < kWindowBytes && (valid >> (at + 2) & 1U)) {
      const char b = static_cast<char>(p[at + 2] | 0x20);
      size = b == (a == 'l' ? 'l' : 'e') ? 3 : 0;
    }
    if (size != 0 && at + size < kWindowBytes) starts |= std::uint64_t{1} << (at + size);
  }
  return starts;
}

// Returns the starts of those stretches of blanks that end in `last` and begin in `firsts`.
std::uint64_t starts_of_stretches(std::uint64_t last, std::uint64_t blanks, std::uint64_t firsts) {
  std::uint64_t starts = 0;
  for (; last != 0 && firsts != 0; last &= last - 1) {
    const auto at = static_cast<unsigned>(std::countr_zero(last));
    const std::uint64_t below = ~blanks & ((std::uint64_t{1} << at) - 1);
    const unsigned first = below == 0 ? 0 : 64U - static_cast<unsigned>(std::countl_zero(below));
    starts |= (std::uint64_t{1} << first) & firsts;
  }
  return starts;
}

// Returns the places in a window where words start. The window begins at the start of a word, whose
// bit is not set. If the end of a word depends on text behind the window, only its start is
// returned, and no place after it.
std::uint64_t word_starts(const Window& w, const char* p) {
  const std::uint64_t others = w.valid & ~(w.letters | w.numbers | w.blanks | w.newlines);
  // A space before other characters is the first character of their word.
  const std::uint64_t other_starts = others & ~(others << 1U) & ~(w.spaces << 1U);
  // A blank or one other character before letters is the first character of their word.
  std::uint64_t starts =
      other_starts | w.numbers | (w.letters & ~((w.letters | w.blanks | other_starts) << 1U));
  starts |= after_contractions(w.apostrophes & other_starts & (w.letters >> 1U), w.valid, p);
  // Newlines directly after other characters belong to their word. The addition carries through
  // each of these runs.
  const std::uint64_t taken = w.newlines & ~((w.newlines & (others << 1U)) + w.newlines);
  const std::uint64_t newlines = w.newlines & ~taken;
  const std::uint64_t white = w.blanks | newlines;
  starts |= white & ~(white << 1U);
  // White space ends after its last newline …
  const std::uint64_t after_newline = w.blanks & (newlines << 1U);
  const std::uint64_t known_next = w.valid >> 1U;
  const std::uint64_t open = w.blanks & ((w.newlines >> 1U) | ~known_next);
  starts |= after_newline & ~starts_of_stretches(open, w.blanks, after_newline);
  // … and before its last blank, if something else follows.
  starts |= w.blanks & known_next & ~((w.blanks | w.newlines) >> 1U);
  return starts & w.valid & ~std::uint64_t{1};
}

}  // namespace

Scanner::Scanner(std::string_view text) : text_(text), table_(char_table()) {
  SL_CHECK(text.size() < (std::size_t{1} << 32U));
}

std::size_t Scanner::word_end(std::size_t begin) {
  CharacterReader reader(text_, table_);
  const std::size_t end = word_end_at(reader, begin);
  nfc_suspect_ = nfc_suspect_ || reader.nfc_suspect();
  return end;
}

std::uint64_t Scanner::starts_at(std::size_t begin) const {
  // Texts in other alphabets would get an empty window.
  if (static_cast<std::uint8_t>(text_[begin]) >= 0x80) return 0;
  const char* p = text_.data() + begin;
  return word_starts(window_at(p, text_.size() - begin), p);
}

std::size_t Scanner::next(std::span<std::uint32_t> ends) {
  std::size_t count = 0;
  while (count + kWordsMin <= ends.size() && at_ < text_.size()) {
    std::uint64_t starts = starts_at(at_);
    const std::size_t window_begin = at_;
    for (; starts != 0; starts &= starts - 1) {
      at_ = window_begin + static_cast<std::size_t>(std::countr_zero(starts));
      ends[count++] = static_cast<std::uint32_t>(at_);
    }
    // The window contains no start. Its word is long, or contains other characters than ASCII, and
    // is matched one character at a time.
    if (at_ != window_begin) continue;
    at_ = word_end(at_);
    ends[count++] = static_cast<std::uint32_t>(at_);
  }
  return count;
}

std::size_t next_safe_cut(std::string_view text, std::size_t from) {
  const std::uint8_t* table = char_table();
  // An entry that equals its class has no NFC bit. These characters neither change nor join.
  constexpr auto kLetter = static_cast<std::uint8_t>(CharClass::Letter);
  constexpr auto kNumber = static_cast<std::uint8_t>(CharClass::Number);
  // `from` may be inside a character.
  std::size_t at = from;
  while (at < text.size() && (static_cast<std::uint8_t>(text[at]) & 0xC0U) == 0x80U) ++at;
  // The entry of the character before `at`, unknown at first.
  std::uint8_t before = kNfcSuspect;
  while (at < text.size()) {
    const Decoded decoded = decode_utf8(text.data() + at);
    const std::uint8_t next = table[decoded.code_point];
    const bool is_plain = (next & ~kClassMask) == 0;
    if (is_plain && (before == kNumber || (before == kLetter && next != kLetter))) return at;
    before = next;
    at += decoded.size_bytes;
  }
  return text.size();
}

}  // namespace sightline::tokenizer
