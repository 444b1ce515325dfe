// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/tokenizer/scanner.h"

#include <array>

#include <gtest/gtest.h>

#include "tests/unit/router/prompt/tokenizer/fixture.h"
#include "tests/unit/router/prompt/tokenizer/naive_tokenizer.h"
#include "tests/unit/router/prompt/tokenizer/random_text.h"

namespace sightline::tokenizer {
namespace {

std::vector<std::uint32_t> scanned(std::string_view text) {
  Scanner scanner(text);
  std::vector<std::uint32_t> all;
  std::array<std::uint32_t, 80> ends;
  while (const std::size_t count = scanner.next(ends)) {
    all.insert(all.end(), ends.begin(), ends.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return all;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  std::size_t begin = 0;
  for (const std::uint32_t end : scanned(text)) {
    list.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return list;
}

const NaiveTokenizer& naive() {
  static const NaiveTokenizer tokenizer(read_test_file("qwen2_5.tokenizer.json"));
  return tokenizer;
}

using Words = std::vector<std::string>;

TEST(Scanner, ABlankBeforeLettersBelongsToThem) {
  EXPECT_EQ(words("a  b\tc 1"), (Words{"a", " ", " b", "\tc", " ", "1"}));
}

TEST(Scanner, DigitsStandAlone) { EXPECT_EQ(words("12a3"), (Words{"1", "2", "a", "3"})); }

TEST(Scanner, NewlinesAfterPunctuationBelongToIt) {
  EXPECT_EQ(words("a;\n\n  b"), (Words{"a", ";\n\n", " ", " b"}));
  EXPECT_EQ(words(" \n \n x"), (Words{" \n \n", " x"}));
}

TEST(Scanner, ContractionsAreWordsInAnyCase) {
  EXPECT_EQ(words("don't we'LLs"), (Words{"don", "'t", " we", "'LL", "s"}));
  EXPECT_EQ(words("''s x's"), (Words{"''", "s", " x", "'s"}));
  EXPECT_EQ(words("x'\u017Fy"), (Words{"x", "'\u017F", "y"}));
}

// Texts of pure ASCII go through windows of 64 characters. With short alphabets every combination
// of classes meets the border of a window.
TEST(Scanner, AsciiTextsAreCutAsTheRegularExpressionCutsThem) {
  constexpr std::string_view kAlphabets[] = {"aB1 \n\r\t.'s", " \n\t", " \n.", "a'stLlvEre ",
                                             "a ."};
  Rng rng(1);
  for (int round = 0; round < 8000; ++round) {
    const std::string_view alphabet = kAlphabets[rng.below(5)];
    std::string text;
    for (std::uint32_t left = rng.below(220); left > 0; --left) {
      text += alphabet[rng.below(static_cast<std::uint32_t>(alphabet.size()))];
    }
    ASSERT_EQ(scanned(text), naive().word_ends(text)) << '"' << text << '"';
  }
}

TEST(Scanner, CutsTextsOfAllScriptsLikeTheRegularExpression) {
  Rng rng(2);
  for (int round = 0; round < 8000; ++round) {
    const std::string text = random_text(rng, 60);
    ASSERT_EQ(scanned(text), naive().word_ends(text)) << '"' << text << '"';
  }
}

TEST(Scanner, EveryAsciiCharacterHasTheClassOfTheRegularExpression) {
  for (char a = 0; a >= 0 && a < 127; ++a) {
    for (char b = 0; b >= 0 && b < 127; ++b) {
      // The padding makes the window decide, and not the path for single characters.
      const std::string text = std::string("x ") + a + b + a + "yz.y yz.y yz";
      ASSERT_EQ(scanned(text), naive().word_ends(text)) << int{a} << ' ' << int{b};
    }
  }
}

TEST(Scanner, SafeCutIsAWordsEndInAnyText) {
  Rng rng(3);
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = random_text(rng, 60);
    const auto size = static_cast<std::uint32_t>(text.size());
    const std::size_t cut = next_safe_cut(text, rng.below(size + 1));
    std::vector<std::uint32_t> parts = scanned(text.substr(0, cut));
    for (const std::uint32_t end : scanned(text.substr(cut))) {
      parts.push_back(end + static_cast<std::uint32_t>(cut));
    }
    ASSERT_EQ(parts, scanned(text));
  }
}

TEST(Scanner, SafeCutFollowsALastLetterOrANumber) {
  EXPECT_EQ(next_safe_cut("ab cd", 0), 2U);
  EXPECT_EQ(next_safe_cut("ab cd", 1), 2U);
  EXPECT_EQ(next_safe_cut("ab cd", 2), 5U);
  EXPECT_EQ(next_safe_cut("12a", 0), 1U);
  EXPECT_EQ(next_safe_cut(" ..\n\n  x.", 0), 8U);
  EXPECT_EQ(next_safe_cut("\u65E5\u672C\u3002\u8A9E", 0), 6U);
}

TEST(Scanner, NoCutIsSafeNearNfcChanges) {
  EXPECT_EQ(next_safe_cut("ae\u0301 b", 0), 6U);
  EXPECT_EQ(next_safe_cut("1\u0301 b", 0), 5U);
  EXPECT_EQ(next_safe_cut("\u0958.", 0), 4U);
}

}  // namespace
}  // namespace sightline::tokenizer
