// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::jinja {
namespace {

using test::evaluated;
using test::rendered;

TEST(Expressions, UndefinedPrintsNothingAndFailsWhenUsed) {
  EXPECT_EQ(rendered("[{{ x }}][{{ (x.y is defined) if x else 'no' }}]"), "[][no]");
  EXPECT_EQ(rendered("a\n{{ x.y }}"), "error: line 2: 'x' is undefined");
  EXPECT_EQ(evaluated("x()"), "error: line 1: 'x' is undefined");
  EXPECT_EQ(evaluated("('a' if false) ~ 'b'"), "b");
  EXPECT_EQ(evaluated("('a' if false).z"),
            "error: line 1: the inline if-expression on line 1 evaluated to false and no else "
            "section was defined.");
  EXPECT_EQ(evaluated("x == y"), "True");
}

TEST(Expressions, LogicGivesOperandsAndStopsEarly) {
  EXPECT_EQ(evaluated("[0 or 'a', 'a' or x.y, '' and x.y, 1 and 2, not []]"),
            "['a', 'a', '', 2, True]");
  EXPECT_EQ(evaluated("1 > 2 > x.y"), "False");
}

TEST(Expressions, DictsTakeAnyHashableKey) {
  EXPECT_EQ(evaluated("{1: 'a', true: 'b', (1, 2): 'c', none: 'd'}"),
            "{1: 'b', (1, 2): 'c', None: 'd'}");
  EXPECT_EQ(evaluated("{[]: 1}"), "error: line 1: unhashable type: 'list'");
}

TEST(Expressions, OnlyCallablesAreCalled) {
  EXPECT_EQ(evaluated("'a'()"), "error: line 1: 'str' object is not callable");
  EXPECT_EQ(evaluated("{}.x()"), "error: line 1: 'dict object' has no attribute 'x'");
}

TEST(Expressions, ErrorsOfTheTemplateReachTheClientUnchanged) {
  const auto parsed = Template::parse("\n\n{{ raise_exception('Only user roles!') }}");
  ASSERT_TRUE(parsed.ok());
  const auto text = parsed->render(Value::dict(Dict()), {});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().message, "Only user roles!");
  EXPECT_EQ(text.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(text.error().blame, Blame::Client);
  EXPECT_EQ(rendered("{% macro m() %}{{ raise_exception('deep') }}{% endmacro %}{{ m() }}"),
            "error: deep");
}

TEST(Expressions, NestingOfValuesIsLimited) {
  EXPECT_EQ(rendered("{% set ns = namespace(v=[]) %}{% for i in range(1000) %}"
                     "{% set ns.v = [ns.v] %}{% endfor %}"),
            "error: line 1: the value is nested too deeply");
  EXPECT_EQ(rendered("{% set ns = namespace(v=[]) %}{% for i in range(1000) %}"
                     "{% set ns.v = dict(a=ns.v) %}{% endfor %}"),
            "error: line 1: the value is nested too deeply");
}

TEST(Expressions, ANamespaceMayHoldItself) {
  EXPECT_EQ(rendered("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns.x.x.x == ns }}"), "True");
}

}  // namespace
}  // namespace sightline::jinja
