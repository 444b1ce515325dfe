// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "router/prompt/template/jinja/syntax.h"
#include "tests/support/rendering.h"

namespace sightline::jinja {
namespace {

using test::evaluated;
using test::rendered;

TEST(Lexer, BlocksTakeTheirLineWithThem) {
  EXPECT_EQ(rendered("a\n  {% if true %}\n  b\n  {% endif %}\nc\n"), "a\n  b\nc");
  EXPECT_EQ(rendered("a\n  {# note #}\nb"), "a\nb");
  EXPECT_EQ(rendered("a {% if true %} b {% endif %} c"), "a  b  c");
  EXPECT_EQ(rendered("{{ 1 }}  {% if true %}x{% endif %}  {# c #}"), "1  x  ");
  EXPECT_EQ(rendered("  {{ 1 }}\n{{ 2 }}\n\n"), "  1\n2\n");
}

TEST(Lexer, SignsOverrideTheRule) {
  EXPECT_EQ(rendered("a \n {%- if true -%} \n b \n {%- endif -%} \n c"), "abc");
  EXPECT_EQ(rendered("a\n  {%+ if true +%}\nb{% endif %}"), "a\n  \nb");
  EXPECT_EQ(rendered("a \n {{- 1 -}} \n b"), "a1b");
  EXPECT_EQ(rendered("a \n {#- x -#} \n b"), "ab");
  EXPECT_EQ(rendered("a\n {#+ x +#}\nb"), "a\n \nb");
}

TEST(Lexer, RawTextIsNotRead) {
  EXPECT_EQ(rendered("{% raw %}{{ x }}{% y %}{# z #}{% endraw %}!"), "{{ x }}{% y %}{# z #}!");
  EXPECT_EQ(rendered("a {%- raw -%} b {%- endraw -%} c"), "abc");
  EXPECT_EQ(rendered("{% raw %}x"), "error: line 1: Missing end of raw directive");
}

TEST(Lexer, LineEndsBecomeOneKindAndTheLastIsDropped) {
  EXPECT_EQ(rendered("a\r\nb\rc\n"), "a\nb\nc");
  EXPECT_EQ(rendered("a\n\n"), "a\n");
  EXPECT_EQ(rendered(""), "");
}

TEST(Lexer, StringsAreUnescapedAsPythonDoes) {
  EXPECT_EQ(evaluated(R"('a\n\t\\\'\"\x41\u00e9\U0001F600\101\q')"), "a\n\t\\'\"Aé😀A\\q");
  EXPECT_EQ(evaluated("'a' \"b\" 'c'"), "abc");
  EXPECT_EQ(evaluated(R"('\ud800')"), "error: line 1: invalid escape in a string");
  EXPECT_EQ(evaluated(R"('\x4')"), "error: line 1: invalid escape in a string");
  EXPECT_EQ(evaluated(R"('\N{DASH}')"), "error: line 1: string escapes \\N{…} are not supported");
}

TEST(Lexer, NumbersHavePythonsForms) {
  EXPECT_EQ(evaluated("[1_000, 0x1F, 0b11, 0o17, 1.5, 1e3, 2.5E-1, 1.0e+2]"),
            "[1000, 31, 3, 15, 1.5, 1000.0, 0.25, 100.0]");
  EXPECT_EQ(evaluated("99999999999999999999"), "error: line 1: invalid integer");
  EXPECT_EQ(evaluated("0x"), "error: line 1: invalid integer");
}

TEST(Lexer, BracesOfADictDoNotEndAPrint) {
  EXPECT_EQ(rendered("{{ {'a': {'b': 1}} }}"), "{'a': {'b': 1}}");
  EXPECT_EQ(rendered("{{ {'a': {'b': 1}}}}"), "{'a': {'b': 1}}");
}

TEST(Lexer, BrokenTagsNameTheirLine) {
  EXPECT_EQ(rendered("\n\n{# x"), "error: line 3: Missing end of comment tag");
  EXPECT_EQ(rendered("\n{{ 'x }}"), "error: line 2: unexpected char '''");
  EXPECT_EQ(rendered("\n{{ 1 "), "error: line 2: unexpected end of template inside a tag");
  EXPECT_EQ(rendered("{{ ) }}"), "error: line 1: unexpected ')'");
  EXPECT_EQ(rendered("{{ (] }}"), "error: line 1: unexpected ']', expected ')'");
  EXPECT_EQ(rendered("{{ 1 ? 2 }}"), "error: line 1: unexpected char '?'");
}

TEST(Lexer, SingleBracesAndUnfinishedOpeningsAreText) {
  EXPECT_EQ(rendered("{ { }} %} #} {"), "{ { }} %} #} {");
}

TEST(Lexer, SourcesHaveABound) {
  const auto tokens = tokenize(std::string(kSourceBytesMax + 1, 'x'));
  ASSERT_FALSE(tokens.ok());
  EXPECT_EQ(tokens.error().code, ErrorCode::TooLarge);
}

}  // namespace
}  // namespace sightline::jinja
