// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::jinja {
namespace {

using test::rendered;

TEST(Statements, BranchesAreTriedInOrder) {
  const std::string source = "{% if a %}1{% elif b %}2{% elif c %}3{% else %}4{% endif %}";
  EXPECT_EQ(rendered(source, R"({"a": 1})"), "1");
  EXPECT_EQ(rendered(source, R"({"b": 1, "c": 1})"), "2");
  EXPECT_EQ(rendered(source, R"({"c": 1})"), "3");
  EXPECT_EQ(rendered(source), "4");
}

TEST(Statements, LoopVariablesShowThePosition) {
  EXPECT_EQ(rendered("{% for x in 'abc' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}"
                     "{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}"
                     "{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}"),
            "1032TrueFalse3b;2121FalseFalse3ac;3210FalseTrue3b;");
  EXPECT_EQ(rendered("{% for x in [1] %}{{ loop.cycle }}{% endfor %}"),
            "error: line 1: loop.cycle is not supported");
}

TEST(Statements, LoopFiltersSeeEffectsOfTheBody) {
  EXPECT_EQ(rendered("{% for x in range(6) if x is odd %}{{ loop.index }}/{{ loop.length }}:{{ x }}"
                     "{{ ',' if not loop.last }}{% endfor %}"),
            "1/3:1,2/3:3,3/3:5");
  EXPECT_EQ(rendered("{% set ns = namespace(stop=false) %}{% for x in range(9) if not ns.stop %}"
                     "{{ x }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}"),
            "012");
}

TEST(Statements, LoopsUnpackAndTakeTheirElseBranch) {
  EXPECT_EQ(rendered("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}"), "a1");
  EXPECT_EQ(rendered("{% for x in [] %}a{% else %}b{% endfor %}"), "b");
  EXPECT_EQ(rendered("{% for x in [1] %}a{% else %}b{% endfor %}"), "a");
  EXPECT_EQ(rendered("\n{% for k, v in [[1]] %}{% endfor %}"),
            "error: line 2: not enough values to unpack (expected 2, got 1)");
  EXPECT_EQ(rendered("{% for k, v in [[1, 2, 3]] %}{% endfor %}"),
            "error: line 1: too many values to unpack (expected 2)");
  EXPECT_EQ(rendered("{% for x in none %}{% endfor %}"),
            "error: line 1: 'NoneType' object is not iterable");
}

TEST(Statements, BreakAndContinueWorkInInnerBranches) {
  EXPECT_EQ(rendered("{% for x in range(9) %}{% if x == 1 %}{% continue %}{% endif %}"
                     "{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}"),
            "023");
  // Jinja2 counts only iterations that reach their end.
  EXPECT_EQ(rendered("{% for x in [1, 2] %}{{ x }}{% continue %}{% else %}none{% endfor %}"),
            "12none");
}

TEST(Statements, AssignmentsInLoopsEndWithTheIteration) {
  EXPECT_EQ(rendered("{% set x = 0 %}{% for i in range(3) %}{{ x }}{% set x = i + 5 %}{{ x }};"
                     "{% endfor %}{{ x }}"),
            "05;06;07;0");
  EXPECT_EQ(rendered("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
  EXPECT_EQ(rendered("{% with x = 1, y = x %}{{ x }}{{ y }}{% endwith %}{{ x }}", R"({"x": 7})"),
            "177");
}

TEST(Statements, BlocksCanBeCapturedAndFiltered) {
  EXPECT_EQ(rendered("{% set x %}a{{ 1 }}{% set y = 2 %}{% endset %}[{{ x }}][{{ y }}]"), "[a1][]");
  EXPECT_EQ(rendered("{% set x | upper | replace('A', 'b') %}a c{% endset %}{{ x }}"), "b C");
  EXPECT_EQ(rendered("{% filter upper %}a{{ 'b' }}{% endfilter %}"), "AB");
  EXPECT_EQ(rendered("a{% generation %}b{% set x = 1 %}{% endgeneration %}{{ x }}"), "ab");
}

TEST(Statements, MacrosSeeTheirDefinitionsScopeLate) {
  EXPECT_EQ(rendered("{% macro f(a, b=a ~ '!', c='z') %}{{ a }}{{ b }}{{ c }}{{ g }}{% endmacro %}"
                     "{% set g = 'G' %}{{ f(1) }} {{ f(1, c=3) }} {{ f() }}"),
            "11!zG 11!3G !zG");
  EXPECT_EQ(rendered("{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}"
                     "{{ f(3) }}"),
            "3210");
  EXPECT_EQ(rendered("{% macro f(a) %}{% endmacro %}\n{{ f(1, 2) }}"),
            "error: line 1: macro 'f' takes not more than 1 argument(s)");
  EXPECT_EQ(rendered("{% macro f(a) %}{% endmacro %}{{ f(b=2) }}"),
            "error: line 1: macro 'f' takes no keyword argument 'b'");
  EXPECT_EQ(rendered("{% macro f(a) %}{{ a.x }}{% endmacro %}{{ f() }}"),
            "error: line 1: parameter 'a' was not provided");
}

TEST(Statements, CallBlocksPassTheirBody) {
  EXPECT_EQ(rendered("{% macro m(x) %}<{{ caller(x, 2) }}>{% endmacro %}"
                     "{% for i in [1] %}{% call(a, b) m('v') %}{{ a }}{{ b }}{{ i }}{% endcall %}"
                     "{% endfor %}"),
            "<v21>");
}

TEST(Statements, NamespacesCarryValuesOutOfLoops) {
  EXPECT_EQ(rendered("{% set ns = namespace({'a': 1}, b=2) %}{% for i in range(3) %}"
                     "{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}"),
            "42");
  EXPECT_EQ(rendered("{% set x = {} %}\n{% set x.a = 1 %}"),
            "error: line 2: cannot assign attribute on non-namespace object");
  EXPECT_EQ(rendered("{% set ns = namespace() %}{% set ns._a = 1 %}"),
            "error: line 1: Chat templates cannot store underscore-prefixed attributes on a "
            "namespace");
}

}  // namespace
}  // namespace sightline::jinja
