// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "router/prompt/template/jinja/parser.h"
#include "router/prompt/template/jinja/template.h"
#include "tests/support/rendering.h"

namespace sightline::jinja {
namespace {

using test::rendered;

TEST(StatementParser, ErrorsNameTheLineAndWhatIsMissing) {
  EXPECT_EQ(rendered("\n{% if 1 %}\n"),
            "error: line 2: Unexpected end of template, expected 'elif'");
  EXPECT_EQ(rendered("{% endif %}"), "error: line 1: Encountered unknown tag 'endif'");
  EXPECT_EQ(rendered("a\n{% include 'x' %}"), "error: line 2: Encountered unknown tag 'include'");
  EXPECT_EQ(rendered("{% 1 %}"), "error: line 1: tag name expected");
  EXPECT_EQ(rendered("{% for x of y %}"), "error: line 1: expected token 'in', got 'of'");
  EXPECT_EQ(rendered("{% for x in y recursive %}{% endfor %}"),
            "error: line 1: recursive loops are not supported");
  EXPECT_EQ(rendered("{% macro f(a=1, b) %}{% endmacro %}"),
            "error: line 1: non-default argument follows default argument");
  EXPECT_EQ(rendered("{% call x %}{% endcall %}"), "error: line 1: expected call");
  EXPECT_EQ(rendered("{% if 1 %}{% else %}{% elif 1 %}{% endif %}"),
            "error: line 1: Encountered unknown tag 'elif'");
}

TEST(StatementParser, LoopControlBelongsInLoops) {
  EXPECT_EQ(rendered("{% break %}"), "error: line 1: 'break' outside loop");
  EXPECT_EQ(rendered("{% for x in [1] %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}"),
            "error: line 1: 'continue' outside loop");
}

TEST(StatementParser, BlocksNestUpToABound) {
  const auto nested = [](int levels) {
    std::string source;
    for (int i = 0; i < levels; ++i) source += "{% if true %}";
    source += "x";
    for (int i = 0; i < levels; ++i) source += "{% endif %}";
    return rendered(source);
  };
  EXPECT_EQ(nested(50), "x");
  EXPECT_EQ(nested(61), "error: line 1: blocks are nested too deeply");
  EXPECT_EQ(nested(30'000), "error: line 1: blocks are nested too deeply");
}

TEST(StatementParser, ElifsAreNoNesting) {
  std::string source = "{% if false %}";
  for (int i = 0; i < 5000; ++i) source += "{% elif false %}";
  EXPECT_EQ(rendered(source + "{% elif true %}x{% endif %}"), "x");
}

TEST(StatementParser, TheTreeKeepsLines) {
  auto tokens = tokenize("a\n{{ x }}\n{% if y %}\n{{ z }}{% endif %}");
  ASSERT_TRUE(tokens.ok());
  const auto syntax = parse_syntax(std::move(tokens).value());
  ASSERT_TRUE(syntax.ok());
  ASSERT_EQ(syntax->body.size(), 4U);
  EXPECT_EQ(syntax->body[1].kind, StatementKind::Print);
  EXPECT_EQ(syntax->body[1].line, 2U);
  EXPECT_EQ(syntax->body[3].kind, StatementKind::If);
  EXPECT_EQ(syntax->body[3].line, 3U);
  EXPECT_EQ(syntax->body[3].body[0].line, 4U);
}

}  // namespace
}  // namespace sightline::jinja
