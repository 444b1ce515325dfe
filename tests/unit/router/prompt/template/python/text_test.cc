// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace sightline::python {
namespace {

using Parts = std::vector<std::string_view>;

TEST(Text, CountsCodePoints) {
  EXPECT_EQ(length_of(""), 0U);
  EXPECT_EQ(length_of("aé漢😀"), 4U);
  EXPECT_EQ(offset_of("aé漢😀", 0), 0U);
  EXPECT_EQ(offset_of("aé漢😀", 3), 6U);
  EXPECT_EQ(offset_of("aé漢😀", 9), 10U);
}

TEST(Text, CodePointsSurviveARoundTrip) {
  for (const char32_t c : {U'a', U'é', U'漢', U'😀', char32_t{0x10FFFF}}) {
    std::string text;
    append_code_point(text, c);
    std::size_t at = 0;
    EXPECT_EQ(next_code_point(text, at), c);
    EXPECT_EQ(at, text.size());
  }
}

TEST(Text, StripsPythonsWhiteSpace) {
  EXPECT_EQ(strip("\x1f \t\r\n\u00a0\u2003\u3000\u2028x y\u0085 ", Side::Both), "x y");
  EXPECT_EQ(strip("\u200bx\u200b", Side::Both), "\u200bx\u200b");  // no white space in Python
  EXPECT_EQ(strip("  x  ", Side::Left), "x  ");
  EXPECT_EQ(strip("  x  ", Side::Right), "  x");
  EXPECT_EQ(strip("éaxaé", Side::Both, "aé"), "x");
  EXPECT_EQ(strip("aaa", Side::Both, "a"), "");
  EXPECT_EQ(strip("x", Side::Both, ""), "x");
}

TEST(Text, SplitsAsPythonDoes) {
  EXPECT_EQ(split("a,b,,c", ",", -1), (Parts{"a", "b", "", "c"}));
  EXPECT_EQ(split("a,b,,c", ",", 1), (Parts{"a", "b,,c"}));
  EXPECT_EQ(split("", ",", -1), (Parts{""}));
  EXPECT_EQ(split("aXXbXX", "XX", -1), (Parts{"a", "b", ""}));
  EXPECT_EQ(split("  a  b c ", std::nullopt, -1), (Parts{"a", "b", "c"}));
  EXPECT_EQ(split("  a  b c ", std::nullopt, 1), (Parts{"a", "b c "}));
  EXPECT_EQ(split("  ", std::nullopt, -1), Parts{});
  EXPECT_EQ(split_right("a,b,c", ",", 1), (Parts{"a,b", "c"}));
  EXPECT_EQ(split_right("  a  b c ", std::nullopt, 1), (Parts{"  a  b", "c"}));
  EXPECT_EQ(split_right("  a  b c ", std::nullopt, -1), (Parts{"a", "b", "c"}));
}

TEST(Text, SplitsLinesAtEveryLineEndOfPython) {
  EXPECT_EQ(split_lines("a\nb\r\nc\rd\u2028e\x0b"
                        "f",
                        false),
            (Parts{"a", "b", "c", "d", "e", "f"}));
  EXPECT_EQ(split_lines("a\n\nb\n", true), (Parts{"a\n", "\n", "b\n"}));
  EXPECT_EQ(split_lines("", false), Parts{});
}

TEST(Text, ReplacesAlsoBetweenCharacters) {
  EXPECT_EQ(replace("aaa", "a", "bb", -1), "bbbbbb");
  EXPECT_EQ(replace("aaa", "a", "b", 2), "bba");
  EXPECT_EQ(replace("aé", "", "-", -1), "-a-é-");
  EXPECT_EQ(replace("aé", "", "-", 2), "-a-é");
  EXPECT_EQ(replace("", "", "-", -1), "-");
  EXPECT_EQ(count_of("aaaa", "aa"), 2U);
  EXPECT_EQ(count_of("aé", ""), 3U);
}

TEST(Text, MapsCaseByUnicode) {
  EXPECT_EQ(to_upper("straße ǆ"), "STRASSE Ǆ");
  EXPECT_EQ(to_lower("ΣΑΣ İ"), "σας i̇");
  EXPECT_EQ(capitalize("ǆABC é"), "ǅabc é");
  EXPECT_EQ(capitalize("ßX"), "Ssx");
  EXPECT_EQ(capitalize(""), "");
  EXPECT_EQ(title("it's a tEST1a"), "It'S A Test1A");
}

TEST(Text, ClassifiesCharacters) {
  EXPECT_TRUE(consists_of("aé漢", CharacterClass::Alphabetic));
  EXPECT_FALSE(consists_of("a1", CharacterClass::Alphabetic));
  EXPECT_FALSE(consists_of("", CharacterClass::Alphabetic));
  EXPECT_TRUE(consists_of("1²", CharacterClass::Digit));
  EXPECT_FALSE(consists_of("1²", CharacterClass::Decimal));
  EXPECT_TRUE(consists_of("½Ⅷ", CharacterClass::Numeric));
  EXPECT_TRUE(consists_of("a1½", CharacterClass::Alphanumeric));
  EXPECT_TRUE(consists_of(" \u2003", CharacterClass::Space));
  EXPECT_TRUE(is_upper("A1 B"));
  EXPECT_FALSE(is_upper("A1 b"));
  EXPECT_FALSE(is_lower("12"));
  EXPECT_TRUE(is_lower("a1"));
}

}  // namespace
}  // namespace sightline::python
