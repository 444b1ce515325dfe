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

// Classes of 64 characters, one bit each, first character lowest. Characters beyond `valid` are
// not ASCII or not in the text: nothing is known of them.
struct Window {
  std::uint64_t valid = 0;
  std::uint64_t letters = 0;
  std::uint64_t numbers = 0;
  std::uint64_t blanks = 0;  // with spaces
  std::uint64_t newlines = 0;
  std::uint64_t spaces = 0;  // U+0020
  std::uint64_t apostrophes = 0;
};
constexpr std::size_t kWindowBytes = 64;

#ifdef __AVX2__
// ASCII classes by two table look-ups, one on each half of the byte: a class is a set of halves
// whose bits meet. Letters take two bits, since A..O and P..Z lie in two rows.
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

// The window of the text that starts at p and has size_bytes left.
Window window_at(const char* p, std::size_t size_bytes) {
  std::array<char, kWindowBytes> padded;
  const std::size_t size = std::min(size_bytes, kWindowBytes);
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
  // The shift brings the bit wanted to the top of its byte.
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

// Ends of contractions: a letter after 's, 't, … begins a word of its own.
std::uint64_t after_contractions(std::uint64_t apostrophes, std::uint64_t valid, const char* p) {
  std::uint64_t starts = 0;
  for (; apostrophes != 0; apostrophes &= apostrophes - 1) {
    const auto at = static_cast<unsigned>(std::countr_zero(apostrophes));
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

// Starts of blank stretches that end at one of `last` and begin at one of `firsts`.
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

// Where words start in a window that begins at a word's start; bit 0 is not set. Of a word whose
// end depends on what follows the window only the start is given, and nothing behind it.
std::uint64_t word_starts(const Window& w, const char* p) {
  const std::uint64_t others = w.valid & ~(w.letters | w.numbers | w.blanks | w.newlines);
  // A space before others is the first character of their word.
  const std::uint64_t other_starts = others & ~(others << 1U) & ~(w.spaces << 1U);
  // A blank, or one other character, before letters is the first character of their word.
  std::uint64_t starts =
      other_starts | w.numbers | (w.letters & ~((w.letters | w.blanks | other_starts) << 1U));
  starts |= after_contractions(w.apostrophes & other_starts & (w.letters >> 1U), w.valid, p);
  // Newlines right after others belong to them: the addition carries through each such run.
  const std::uint64_t taken = w.newlines & ~((w.newlines & (others << 1U)) + w.newlines);
  const std::uint64_t newlines = w.newlines & ~taken;
  const std::uint64_t white = w.blanks | newlines;
  starts |= white & ~(white << 1U);
  // White space is cut after its last newline …
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
  Reader reader(text_, table_);
  const std::size_t end = word_end_at(reader, begin);
  nfc_suspect_ = nfc_suspect_ || reader.nfc_suspect();
  return end;
}

std::uint64_t Scanner::starts_at(std::size_t begin) const {
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
    if (at_ != window_begin) continue;
    at_ = word_end(at_);
    ends[count++] = static_cast<std::uint32_t>(at_);
  }
  return count;
}

std::size_t next_safe_cut(std::string_view text, std::size_t from) {
  const std::uint8_t* table = char_table();
  // Entries equal to a class have no NFC bit: such characters neither change nor join.
  constexpr auto kLetter = static_cast<std::uint8_t>(CharClass::Letter);
  constexpr auto kNumber = static_cast<std::uint8_t>(CharClass::Number);
  std::size_t at = from;
  while (at < text.size() && (static_cast<std::uint8_t>(text[at]) & 0xC0U) == 0x80U) ++at;
  std::uint8_t before = kNfcSuspect;  // of the character before `at`, at first not known
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
