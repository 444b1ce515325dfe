// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/unicode.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <gtest/gtest.h>
#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include "common/base/clock.h"
#include "common/base/rng.h"

#include "tests/support/thread_time.h"
#include "tests/unit/router/prompt/tokenizer/random_text.h"

namespace sightline::tokenizer {
namespace {

CharClass class_of(std::uint32_t c) { return static_cast<CharClass>(char_table()[c] & kClassMask); }

std::string normalized(std::string_view text) {
  std::string out;
  return normalize_nfc(text, out) ? out : std::string(text);
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

std::string normalized_by_icu(const std::string& text) {
  UErrorCode error = U_ZERO_ERROR;
  std::string out;
  icu::Normalizer2::getNFCInstance(error)
      ->normalize(icu::UnicodeString::fromUTF8(text), error)
      .toUTF8String(out);
  return out;
}

// The counts of one run of \p{L}, \p{N} and \s over every code point with tokenizers 0.23.3.
TEST(CharTable, HasTheReferenceLibrarysNumberOfCharacters) {
  std::map<CharClass, int> counts;
  for (std::uint32_t c = 0; c < kCodePoints; ++c) ++counts[class_of(c)];
  EXPECT_EQ(counts[CharClass::Letter], 141'028);
  EXPECT_EQ(counts[CharClass::Number], 1'911);
  EXPECT_EQ(counts[CharClass::Blank] + counts[CharClass::Newline], 25);
}

TEST(CharTable, HasLettersNewerThanTheInstalledIcu) {
  EXPECT_EQ(class_of(0x1C89), CharClass::Letter);   // Unicode 16.0
  EXPECT_EQ(class_of(0x2EBF0), CharClass::Letter);  // Unicode 15.1
  EXPECT_EQ(class_of(0x1CCF0), CharClass::Number);  // Unicode 16.0
  EXPECT_EQ(class_of(0x2EE5E), CharClass::Other);   // not assigned
}

TEST(CharTable, ClassesFollowThePattern) {
  EXPECT_EQ(class_of('\n'), CharClass::Newline);
  EXPECT_EQ(class_of(0x2028), CharClass::Blank);
  EXPECT_EQ(class_of(0x180E), CharClass::Other);
  EXPECT_EQ(class_of(0x2167), CharClass::Number);
  EXPECT_EQ(class_of(0x0301), CharClass::Other);
  EXPECT_EQ(class_of(0xE000), CharClass::Other);
  EXPECT_EQ(class_of(0x10FFFF), CharClass::Other);
}

TEST(Nfc, ComposesAndReorders) {
  EXPECT_EQ(normalized("e\u0301"), "\u00E9");
  EXPECT_EQ(normalized("a\u0301\u0323b"), "\u1EA1\u0301b");
  EXPECT_EQ(normalized("\u212B \u0958 \u1100\u1161\u11A8"), "\u00C5 \u0915\u093C \uAC01");
  std::string out;
  EXPECT_FALSE(normalize_nfc("\u00E9 \u0928\u094D \u65E5", out));
}

// The normalizer of the reference library has Unicode 9.0, which lacks these marks.
TEST(Nfc, KeepsMarksNewerThanUnicode9) {
  EXPECT_EQ(normalized("a\u0301\u0898"), "\u00E1\u0898");
  EXPECT_EQ(normalized("a\u0345\u08D0"), "a\u0345\u08D0");
  EXPECT_EQ(normalized("\U00011935\U00011930"), "\U00011935\U00011930");
}

TEST(Nfc, StretchesGiveTheNfcOfTheWholeText) {
  Rng rng(1);
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = random_text(rng, 40);
    ASSERT_EQ(normalized(text), normalized_by_icu(text)) << text;
  }
}

TEST(Nfc, LongRunsOfMarksAreSortedAsIcuSortsThem) {
  Rng rng(2);
  constexpr const char* kMarks[] = {"\u0301", "\u0323", "\u0345", "\u0344", "\u0F73",
                                    "\u0F71", "\u0334", "\u05B0", "\u3099", "\u0327"};
  for (int round = 0; round < 300; ++round) {
    std::string text = round % 2 == 0 ? "a" : "\u304B";
    for (std::uint32_t left = 100 + rng.below(200); left > 0; --left) text += kMarks[rng.below(10)];
    ASSERT_EQ(normalized(text), normalized_by_icu(text));
  }
}

// The processor time, the shortest of three.
Duration time_to_normalize(const std::string& text) {
  Duration shortest = Duration::max();
  for (int i = 0; i < 3; ++i) {
    const Duration begin = test::thread_time();
    EXPECT_FALSE(normalized(text).empty());
    shortest = std::min(shortest, test::thread_time() - begin);
  }
  return shortest;
}

// Quadratic time would be 1,024 times as much.
TEST(Nfc, LongRunOfMarksIsNotQuadratic) {
  for (const char* pair : {"\u0301\u0323", "\u0F73", "\u0344\u0334"}) {
    const Duration shorter = time_to_normalize("e" + repeated(pair, 5'000));
    EXPECT_LT(time_to_normalize("e" + repeated(pair, 160'000)), 180 * shorter) << pair;
  }
}

}  // namespace
}  // namespace sightline::tokenizer
