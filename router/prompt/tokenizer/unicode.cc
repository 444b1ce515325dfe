// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/unicode.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include "common/base/check.h"

namespace sightline::tokenizer {
namespace {

struct ClassRange {
  std::uint32_t first;
  std::uint32_t last;
  CharClass char_class;
};

// Letters and numbers that are new in Unicode 15.1 and 16.0. ICU 72 knows only Unicode 15.0.
constexpr ClassRange kUnicode16[] = {
    {0x1C89, 0x1C8A, CharClass::Letter},   {0xA7CB, 0xA7CD, CharClass::Letter},
    {0xA7DA, 0xA7DC, CharClass::Letter},   {0x105C0, 0x105F3, CharClass::Letter},
    {0x10D40, 0x10D49, CharClass::Number}, {0x10D4A, 0x10D65, CharClass::Letter},
    {0x10D6F, 0x10D85, CharClass::Letter}, {0x10EC2, 0x10EC4, CharClass::Letter},
    {0x11380, 0x11389, CharClass::Letter}, {0x1138B, 0x1138B, CharClass::Letter},
    {0x1138E, 0x1138E, CharClass::Letter}, {0x11390, 0x113B5, CharClass::Letter},
    {0x113B7, 0x113B7, CharClass::Letter}, {0x113D1, 0x113D1, CharClass::Letter},
    {0x113D3, 0x113D3, CharClass::Letter}, {0x116D0, 0x116E3, CharClass::Number},
    {0x11BC0, 0x11BE0, CharClass::Letter}, {0x11BF0, 0x11BF9, CharClass::Number},
    {0x13460, 0x143FA, CharClass::Letter}, {0x16100, 0x1611D, CharClass::Letter},
    {0x16130, 0x16139, CharClass::Number}, {0x16D40, 0x16D6C, CharClass::Letter},
    {0x16D70, 0x16D79, CharClass::Number}, {0x18CFF, 0x18CFF, CharClass::Letter},
    {0x1CCF0, 0x1CCF9, CharClass::Number}, {0x1E5D0, 0x1E5ED, CharClass::Letter},
    {0x1E5F0, 0x1E5F0, CharClass::Letter}, {0x1E5F1, 0x1E5FA, CharClass::Number},
    {0x2EBF0, 0x2EE5D, CharClass::Letter},
};
constexpr std::uint8_t kClassVersionMax = 16;

// NFC for the characters of Unicode 9.0. Every other character is a starter that joins nothing, as
// in a normalizer of that version.
const icu::Normalizer2& nfc() {
  static const std::unique_ptr<const icu::UnicodeSet> known = [] {
    UErrorCode error = U_ZERO_ERROR;
    auto set = std::make_unique<icu::UnicodeSet>(icu::UnicodeSet(u"[:age=9.0:]", error));
    SL_CHECK(U_SUCCESS(error) && !set->isEmpty());
    set->freeze();
    return set;
  }();
  static const icu::FilteredNormalizer2 filtered = [] {
    UErrorCode error = U_ZERO_ERROR;
    const icu::Normalizer2* full = icu::Normalizer2::getNFCInstance(error);
    SL_CHECK(U_SUCCESS(error));
    return icu::FilteredNormalizer2(*full, *known);
  }();
  return filtered;
}

CharClass class_of(UChar32 c) {
  if (c == '\r' || c == '\n') return CharClass::Newline;
  UVersionInfo age;
  u_charAge(c, age);
  // A newer ICU must not give other classes than Unicode 16.0.
  if (age[0] > kClassVersionMax) return CharClass::Other;
  if (u_hasBinaryProperty(c, UCHAR_WHITE_SPACE) != 0) return CharClass::Blank;
  const std::uint32_t category = U_GET_GC_MASK(c);
  if ((category & U_GC_L_MASK) != 0) return CharClass::Letter;
  if ((category & U_GC_N_MASK) != 0) return CharClass::Number;
  return CharClass::Other;
}

std::uint8_t nfc_bits_of(UChar32 c) {
  UErrorCode error = U_ZERO_ERROR;
  const bool joins = nfc().hasBoundaryBefore(c) == 0;
  const bool stable = nfc().quickCheck(icu::UnicodeString(c), error) == UNORM_YES &&
                      nfc().getCombiningClass(c) == 0;
  return static_cast<std::uint8_t>((joins ? kNfcJoins : 0) | (stable && !joins ? 0 : kNfcSuspect));
}

std::vector<std::uint8_t> build_table() {
  // Above the ideographs only tags and private use are assigned. They are Others that NFC does not
  // change.
  constexpr UChar32 kAssignedEnd = 0x40000;
  std::vector<std::uint8_t> table(kCodePoints, static_cast<std::uint8_t>(CharClass::Other));
  for (UChar32 c = 0; c < kAssignedEnd; ++c) {
    const auto index = static_cast<std::size_t>(c);
    if (u_charType(c) == U_UNASSIGNED || u_charType(c) == U_SURROGATE) continue;
    table[index] = static_cast<std::uint8_t>(class_of(c));
    // No character below U+0300 changes or joins in NFC.
    if (c >= 0x300) table[index] = static_cast<std::uint8_t>(table[index] | nfc_bits_of(c));
  }
  for (const ClassRange& range : kUnicode16) {
    for (std::uint32_t c = range.first; c <= range.last; ++c) {
      table[c] = static_cast<std::uint8_t>((table[c] & ~kClassMask) |
                                           static_cast<std::uint8_t>(range.char_class));
    }
  }
  return table;
}

std::uint8_t entry_at(std::string_view text, std::size_t at) {
  return char_table()[decode_utf8(text.data() + at).code_point];
}

std::size_t next_character(std::string_view text, std::size_t at) {
  return at + decode_utf8(text.data() + at).size_bytes;
}

std::size_t previous_character(std::string_view text, std::size_t at) {
  do {
    --at;
  } while ((static_cast<std::uint8_t>(text[at]) & 0xC0U) == 0x80U);
  return at;
}

// Returns the first character from `at` on with this flag, or the text's size.
std::size_t find_flag(std::string_view text, std::size_t at, std::uint8_t flag) {
  const std::uint8_t* table = char_table();
  while (at < text.size()) {
    // The lead byte of U+0300 is CC. No character below has a flag.
    if (static_cast<std::uint8_t>(text[at]) < 0xCC) {
      ++at;
      continue;
    }
    const Decoded decoded = decode_utf8(text.data() + at);
    if ((table[decoded.code_point] & flag) != 0) return at;
    at += decoded.size_bytes;
  }
  return text.size();
}

// Decomposes a run and sorts it into canonical order. ICU inserts marks one by one, which takes
// quadratic time in a long run of marks. A hostile text could use this. After sorting, ICU has
// nothing to move.
icu::UnicodeString decomposed_and_sorted(const icu::UnicodeString& run) {
  struct Mark {
    UChar32 code_point;
    std::uint8_t combining_class;
  };
  std::vector<Mark> marks;
  const auto add = [&marks](UChar32 c) { marks.push_back({c, nfc().getCombiningClass(c)}); };
  for (std::int32_t i = 0; i < run.length(); i = run.moveIndex32(i, 1)) {
    const UChar32 c = run.char32At(i);
    icu::UnicodeString decomposition;
    if (nfc().getDecomposition(c, decomposition) == 0) {
      add(c);
      continue;
    }
    for (std::int32_t k = 0; k < decomposition.length(); k = decomposition.moveIndex32(k, 1)) {
      add(decomposition.char32At(k));
    }
  }
  // A starter ends a sequence of marks. The sort must not move marks across it.
  const auto starts = [](const Mark& mark) { return mark.combining_class == 0; };
  for (auto begin = marks.begin(); begin != marks.end();) {
    const auto first = std::find_if_not(begin, marks.end(), starts);
    const auto last = std::find_if(first, marks.end(), starts);
    std::stable_sort(first, last, [](const Mark& a, const Mark& b) {
      return a.combining_class < b.combining_class;
    });
    begin = last;
  }
  icu::UnicodeString sorted;
  for (const Mark& mark : marks) sorted.append(mark.code_point);
  return sorted;
}

void append_normalized(std::string_view run, std::string& out) {
  constexpr std::size_t kLongRunBytes = 128;
  UErrorCode error = U_ZERO_ERROR;
  icu::UnicodeString text = icu::UnicodeString::fromUTF8(
      icu::StringPiece(run.data(), static_cast<std::int32_t>(run.size())));
  if (run.size() > kLongRunBytes) text = decomposed_and_sorted(text);
  const icu::UnicodeString normalized = nfc().normalize(text, error);
  SL_CHECK(U_SUCCESS(error));
  normalized.toUTF8String(out);
}

}  // namespace

const std::uint8_t* char_table() {
  static const std::vector<std::uint8_t> table = build_table();
  return table.data();
}

bool normalize_nfc(std::string_view text, std::string& out) {
  out.clear();
  std::size_t copied = 0;
  bool changed = false;
  std::size_t suspect = find_flag(text, 0, kNfcSuspect);
  while (suspect < text.size()) {
    // NFC never joins across the ends of this stretch. It can be normalized alone.
    std::size_t begin = suspect;
    while (begin > copied && (entry_at(text, begin) & kNfcJoins) != 0) {
      begin = previous_character(text, begin);
    }
    std::size_t end = next_character(text, suspect);
    while (end < text.size() && (entry_at(text, end) & kNfcJoins) != 0) {
      end = next_character(text, end);
    }
    out.append(text, copied, begin - copied);
    const std::size_t out_begin = out.size();
    append_normalized(text.substr(begin, end - begin), out);
    changed = changed || std::string_view(out).substr(out_begin) != text.substr(begin, end - begin);
    copied = end;
    suspect = find_flag(text, end, kNfcSuspect);
  }
  out.append(text, copied);
  return changed;
}

}  // namespace sightline::tokenizer
