// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/router/prompt/tokenizer/random_text.h"

#include <array>
#include <iterator>
#include <string_view>

#include <unicode/uchar.h>
#include <unicode/unistr.h>

namespace sightline::tokenizer {
namespace {

struct ClassRange {
  std::uint32_t first;
  std::uint32_t last;
};

constexpr ClassRange kRanges[] = {
    {'a', 'z'},         {'A', 'Z'},         {'0', '9'},         {' ', '~'},
    {'\t', '\r'},       {0x00, 0x1F},       {0x80, 0x17F},      {0x300, 0x36F},
    {0x370, 0x3FF},     {0x400, 0x4FF},     {0x590, 0x5FF},     {0x600, 0x6FF},
    {0x900, 0x97F},     {0xB80, 0xBFF},     {0xE00, 0xE7F},     {0xF00, 0xFBC},
    {0x1100, 0x11FF},   {0x1E00, 0x1FFF},   {0x2000, 0x206F},   {0x2070, 0x218B},
    {0x3000, 0x30FF},   {0x4E00, 0x9FD5},   {0xAC00, 0xD7A3},   {0xF900, 0xFAD9},
    {0xFE00, 0xFFEF},   {0x1D100, 0x1D1E8}, {0x1D400, 0x1D7FF}, {0x1F300, 0x1F6D2},
    {0x20000, 0x2A6D6}, {0x2F800, 0x2FA1D},
};

constexpr std::string_view kFragments[] = {
    "'s",
    "'T",
    "'re",
    "'VE",
    "'m",
    "'ll",
    "'D",
    "'\u017F",
    "'",
    "''s",
    " 's",
    "'lL",
    "don't",
    " ",
    "  ",
    "    ",
    "\n",
    "\r\n",
    "\n\n",
    " \n",
    "\n ",
    "\t",
    " \t ",
    "\u00A0",
    "\u3000",
    "\u2028",
    "\u0085",
    "the",
    " the",
    "ing",
    "tion",
    " def",
    "{\n",
    "// ",
    "...",
    "?!",
    "_",
    "-",
    "e\u0301",
    "\u00E9",
    "\u1100\u1161\u11A8",
    "\u0F71\u0F72\u0F74",
    "\u0344",
    "\u212B",
    "\u0958",
    "\u0301\u0323",
    "\u65E5\u672C\u8A9E",
    "\u4F60\u597D",
    "\u3067\u3059",
    "\u3002",
    "\uFF0C",
    "\U0001F600",
    "\U0001F469\u200D\U0001F680",
    "\U0001F1E9\U0001F1EA",
    "1",
    "12345",
    "\u0661",
    "\u2167",
    "\u00B2",
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|image_pad|>",
    "<think>",
    "<tool_call>",
    "<|im_",
    "<|",
    "|>",
    "<",
    "x",
};

template <class T, std::size_t N>
const T& pick(Rng& rng, const T (&list)[N]) {
  return list[rng.below(static_cast<std::uint32_t>(N))];
}

bool is_known(std::uint32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  UVersionInfo age;
  u_charAge(c, age);
  // U+180E is white space for PCRE2, and is in no range above.
  return u_isdefined(c) != 0 && age[0] <= 9;
}

}  // namespace

std::string random_text(Rng& rng, std::uint32_t pieces_max) {
  const std::array<ClassRange, 2> favoured = {pick(rng, kRanges), pick(rng, kRanges)};
  const std::uint32_t pieces = rng.below(pieces_max + 1);
  const std::uint32_t fragments_percent = rng.below(70);
  icu::UnicodeString text;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    if (rng.below(100) < fragments_percent) {
      const std::string_view fragment = pick(rng, kFragments);
      text += icu::UnicodeString::fromUTF8(
          icu::StringPiece(fragment.data(), static_cast<std::int32_t>(fragment.size())));
      continue;
    }
    const ClassRange range = rng.below(4) == 0 ? pick(rng, kRanges) : favoured[rng.below(2)];
    const std::uint32_t repeats = rng.below(8) == 0 ? 1 + rng.below(90) : 1 + rng.below(3);
    for (std::uint32_t k = 0; k < repeats; ++k) {
      const std::uint32_t c = range.first + rng.below(range.last - range.first + 1);
      if (is_known(c)) text.append(static_cast<UChar32>(c));
    }
  }
  std::string utf8;
  text.toUTF8String(utf8);
  return utf8;
}

}  // namespace sightline::tokenizer
