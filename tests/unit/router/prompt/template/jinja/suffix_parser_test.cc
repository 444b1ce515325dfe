// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::jinja {
namespace {

using test::evaluated;
using test::rendered;

TEST(SuffixParser, ChainsAttributesSubscriptsCallsAndFilters) {
  EXPECT_EQ(evaluated("a.b['c'][0].upper()[1:]|lower|replace('l', 'L')|trim",
                      R"({"a": {"b": {"c": ["hello"]}}})"),
            "eLLo");
  EXPECT_EQ(evaluated("a.0.1", R"({"a": [[1, 2]]})"), "2");
}

TEST(SuffixParser, ReadsEveryFormOfASlice) {
  const std::string variables = R"({"l": [0, 1, 2, 3]})";
  for (const auto& [slice, expected] :
       std::initializer_list<std::pair<std::string, std::string>>{{"[:]", "[0, 1, 2, 3]"},
                                                                  {"[1:]", "[1, 2, 3]"},
                                                                  {"[:1]", "[0]"},
                                                                  {"[1:3]", "[1, 2]"},
                                                                  {"[::2]", "[0, 2]"},
                                                                  {"[1::2]", "[1, 3]"},
                                                                  {"[:3:2]", "[0, 2]"},
                                                                  {"[3:0:-1]", "[3, 2, 1]"},
                                                                  {"[1:2:]", "[1]"}}) {
    EXPECT_EQ(evaluated("l" + slice, variables), expected) << slice;
  }
}

TEST(SuffixParser, TestsTakeOneBareArgument) {
  EXPECT_EQ(evaluated("4 is divisibleby 2 and 3 is not divisibleby 2"), "True");
  EXPECT_EQ(evaluated("1 is in [1] or false"), "True");
  EXPECT_EQ(evaluated("'x' if y is defined else 'z'"), "z");
  EXPECT_EQ(evaluated("1 is odd is true"),
            "error: line 1: You cannot chain multiple tests with is");
}

TEST(SuffixParser, CallsTakeKeywordsLast) {
  EXPECT_EQ(evaluated("dict(a=1, b=2,)"), "{'a': 1, 'b': 2}");
  EXPECT_EQ(evaluated("dict(a=1, 2)"),
            "error: line 1: invalid syntax for function call expression");
  EXPECT_EQ(evaluated("dict(**{'a': 1})"),
            "error: line 1: calls with *args or **kwargs are not supported");
}

TEST(SuffixParser, AssignsToNamesTuplesAndNamespaces) {
  EXPECT_EQ(rendered("{% set a, (b, c) = 1, (2, 3) %}{{ a }}{{ b }}{{ c }}"), "123");
  EXPECT_EQ(rendered("{% set ns = namespace(a=1) %}{% set ns.a, b = 5, 6 %}{{ ns.a }}{{ b }}"),
            "56");
  EXPECT_EQ(rendered("{% set none = 1 %}"), "error: line 1: can't assign to 'none'");
  EXPECT_EQ(rendered("{% set 1 = 1 %}"), "error: line 1: expected token 'name', got 'integer'");
  EXPECT_EQ(rendered("{% set " + std::string(100'000, '(') + "%}"),
            "error: line 1: unexpected '}', expected ')'");
  EXPECT_EQ(rendered("{% set " + std::string(1000, '(') + "a" + std::string(1000, ')') + " = 1 %}"),
            "error: line 1: the assignment is nested too deeply");
}

}  // namespace
}  // namespace sightline::jinja
