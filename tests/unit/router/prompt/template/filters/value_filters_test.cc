// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::filters {
namespace {

using test::evaluated;

TEST(ValueFilters, DefaultReplacesMissingValues) {
  EXPECT_EQ(evaluated("[x|default('d'), ''|default('d'), ''|default('d', true), none|d(1), "
                      "x|default, 0|d(default_value=5, boolean=true)]"),
            "['d', '', 'd', None, '', 5]");
}

TEST(ValueFilters, TextFiltersPrintTheirInputFirst) {
  EXPECT_EQ(evaluated("[' a '|trim, 'xax'|trim('x'), none|upper, 12|string, 'aB'|capitalize, "
                      "'AB'|lower, 'aa'|replace('a', 'b', 1), x|trim]"),
            "['a', 'a', 'NONE', '12', 'Ab', 'ab', 'ba', '']");
  EXPECT_EQ(evaluated("'it is-a (tEST) <x'|title"), "It Is-A (Test) <X");
  EXPECT_EQ(evaluated("'%s-%s'|format('a', 1)"), "a-1");
  EXPECT_EQ(evaluated("'%(k)s'|format(k=2)"), "2");
}

TEST(ValueFilters, IndentSkipsFirstAndBlankLinesByDefault) {
  EXPECT_EQ(evaluated("'a\n\nb'|indent"), "a\n\n    b");
  EXPECT_EQ(evaluated("'a\n\nb'|indent(1, true, true)"), " a\n \n b");
  EXPECT_EQ(evaluated("'a\nb'|indent('> ')"), "a\n> b");
  EXPECT_EQ(evaluated("1|indent"), "error: line 1: indent: expected a text, got 'int'");
}

TEST(ValueFilters, NumbersAreReadAsPythonReadsThem) {
  EXPECT_EQ(evaluated("['42'|int, '42.9'|int, 'x'|int, 'x'|int(7), ' 1_0 '|int, '0x1f'|int(0, 16), "
                      "-3.9|int, none|int, 1e20|int, true|int]"),
            "[42, 42, 0, 7, 10, 31, -3, 0, 100000000000000000000, 1]");
  EXPECT_EQ(evaluated("['1.5'|float, 'x'|float, 2|float, '1e3'|float, 'x'|float(9)]"),
            "[1.5, 0.0, 2.0, 1000.0, 9]");
  EXPECT_EQ(evaluated("[-3|abs, -2.5|abs, 42.55|round, 42.55|round(1, 'floor'), 2.5|round, "
                      "2.001|round(0, 'ceil'), 7|round, 0.125|round(2)]"),
            "[3, 2.5, 43.0, 42.5, 2.0, 3.0, 7, 0.12]");
  EXPECT_EQ(evaluated("'a'|abs"), "error: line 1: bad operand type for abs(): 'str'");
  EXPECT_EQ(evaluated("x|int"), "error: line 1: 'x' is undefined");
}

TEST(ValueFilters, ToJsonTakesTransformersArguments) {
  const std::string variables = R"({"v": {"b": "<é'>", "a": [1, {}]}})";
  EXPECT_EQ(evaluated("v|tojson", variables), R"({"b": "<é'>", "a": [1, {}]})");
  EXPECT_EQ(evaluated("v|tojson(ensure_ascii=true, sort_keys=true)", variables),
            R"({"a": [1, {}], "b": "<\u00e9'>"})");
  EXPECT_EQ(evaluated("v|tojson(separators=(',', ':'))", variables), R"({"b":"<é'>","a":[1,{}]})");
  EXPECT_EQ(evaluated("[1]|tojson(indent=1)"), "[\n 1\n]");
  EXPECT_EQ(evaluated("[1]|tojson(indent='-')"), "[\n-1\n]");
  EXPECT_EQ(evaluated("x|tojson"),
            "error: line 1: Object of type Undefined is not JSON serializable");
}

TEST(ValueFilters, AttrIgnoresItems) {
  EXPECT_EQ(evaluated("[{'a': 1}|attr('a') is defined, {'a': 1}|attr('items') is callable]"),
            "[False, True]");
}

TEST(ValueFilters, UnknownFiltersAreNamed) {
  EXPECT_EQ(evaluated("1|nosuch"), "error: line 1: No filter named 'nosuch'.");
}

}  // namespace
}  // namespace sightline::filters
