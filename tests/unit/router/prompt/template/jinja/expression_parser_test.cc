// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "router/prompt/template/jinja/parser.h"
#include "router/prompt/template/jinja/template.h"
#include "tests/support/rendering.h"

namespace sightline::jinja {
namespace {

using test::evaluated;
using test::rendered;

TEST(ExpressionParser, BindsAsJinja2Does) {
  EXPECT_EQ(evaluated("1 + 2 * 3 - 4 // 3"), "6");
  EXPECT_EQ(evaluated("2 * 3 ** 2"), "18");
  EXPECT_EQ(evaluated("-2 ** 2"), "4");           // the sign belongs to the base
  EXPECT_EQ(evaluated("2 ** 3 ** 2"), "64");      // from the left, unlike Python
  EXPECT_EQ(evaluated("1 ~ 2 + 3 ~ 4"), "1234");  // ~ binds tighter than +
  EXPECT_EQ(evaluated("not 1 == 2 and 2 in [2] or false"), "True");
  EXPECT_EQ(evaluated("1 + 1 is odd"), "2");  // 1 + (1 is odd)
  EXPECT_EQ(evaluated("not x is defined"), "True");
  EXPECT_EQ(evaluated("-1|abs"), "1");
  EXPECT_EQ(evaluated("1 if false else 2 if false else 3"), "3");
  EXPECT_EQ(evaluated("'a' if true"), "a");
  EXPECT_EQ(evaluated("not not 1"), "True");
  EXPECT_EQ(evaluated("- - 3 - -+2"), "5");
  EXPECT_EQ(evaluated("1 not in [2] not in [true]"), "True");
}

TEST(ExpressionParser, ReadsDisplaysWithTrailingCommas) {
  EXPECT_EQ(evaluated("[[1, 2,], (1,), (), (1), {'a': 1, 2: [],}, []]"),
            "[[1, 2], (1,), (), 1, {'a': 1, 2: []}, []]");
  EXPECT_EQ(evaluated("1, 2"), "(1, 2)");
}

TEST(ExpressionParser, ErrorsNameTheLineAndTheToken) {
  EXPECT_EQ(rendered("\n{{ 1 + }}"), "error: line 2: unexpected 'end of print statement'");
  EXPECT_EQ(rendered("{{ [1 2] }}"), "error: line 1: expected token ']', got 'integer'");
  EXPECT_EQ(rendered("{{ {1} }}"), "error: line 1: expected token ':', got '}'");
  EXPECT_EQ(rendered("{{ }}"),
            "error: line 1: expected token 'expression', got 'end of print statement'");
  EXPECT_EQ(rendered("{{ 1 2 }}"),
            "error: line 1: expected token 'end of print statement', got 'integer'");
}

TEST(ExpressionParser, NestingIsBounded) {
  const auto nested = [](std::size_t levels) {
    return rendered("{{ " + std::string(levels, '(') + "1" + std::string(levels, ')') + " }}");
  };
  EXPECT_EQ(nested(50), "1");
  EXPECT_EQ(nested(100), "error: line 1: the expression is nested too deeply");
  EXPECT_EQ(nested(100'000), "error: line 1: the expression is nested too deeply");
}

TEST(ExpressionParser, ChainsAreBounded) {
  const auto chain = [](const std::string& link, std::size_t count) {
    std::string source = "{{ 1";
    for (std::size_t i = 0; i < count; ++i) source += link;
    return rendered(source + " }}");
  };
  EXPECT_EQ(chain(" + 1", 200), "201");
  for (const char* link : {" + 1", "|int", ".x", "[0]", " ** 1", " or 0", " if 1", " is odd"}) {
    EXPECT_TRUE(chain(link, 20'000).starts_with("error: line 1: ")) << link;
  }
  for (const char* prefix : {"not ", "- "}) {
    std::string source = "{{ ";
    for (int i = 0; i < 20'000; ++i) source += prefix;
    EXPECT_EQ(rendered(source + "1 }}"), "error: line 1: the expression is too deep");
  }
}

}  // namespace
}  // namespace sightline::jinja
