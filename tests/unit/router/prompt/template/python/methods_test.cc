// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/methods.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::python {
namespace {

using test::evaluated;

TEST(Methods, TextMethodsGivePythonsResults) {
  EXPECT_EQ(evaluated("['a,b'.split(','), 'a b'.split(), 'a,b,c'.rsplit(',', 1), "
                      "'a\nb'.splitlines(), 'a,b,c'.split(sep=',', maxsplit=1)]"),
            "[['a', 'b'], ['a', 'b'], ['a,b', 'c'], ['a', 'b'], ['a', 'b,c']]");
  EXPECT_EQ(evaluated("[' x '.strip(), 'xax'.strip('x'), 'xax'.lstrip('x'), 'xax'.rstrip('x')]"),
            "['x', 'a', 'ax', 'xa']");
  EXPECT_EQ(evaluated("['abc'.startswith('ab'), 'abc'.endswith(('x', 'bc')), "
                      "'abc'.startswith('b', 1), 'abc'.endswith('a', 0, 1)]"),
            "[True, True, True, True]");
  EXPECT_EQ(evaluated("['aé漢'.find('漢'), 'a'.find('b'), 'aba'.rfind('a'), 'aba'.count('a'), "
                      "'aba'.index('b')]"),
            "[2, -1, 2, 2, 1]");
  EXPECT_EQ(evaluated("['k=v=w'.partition('='), 'k=v=w'.rpartition('='), 'k'.rpartition('=')]"),
            "[('k', '=', 'v=w'), ('k=v', '=', 'w'), ('', '', 'k')]");
  EXPECT_EQ(evaluated("['-'.join(['a', 'b']), 'abc'.removeprefix('a'), 'abc'.removesuffix('c'), "
                      "'aXa'.replace('a', 'b', 1), 'aB'.upper(), 'aB'.lower(), 'ab c'.title(), "
                      "'aB'.capitalize()]"),
            "['a-b', 'bc', 'ab', 'bXa', 'AB', 'ab', 'Ab C', 'Ab']");
  EXPECT_EQ(evaluated("['1'.isdigit(), 'a'.isalpha(), ' '.isspace(), 'A'.isupper()]"),
            "[True, True, True, True]");
}

TEST(Methods, DictAndListMethodsGivePythonsResults) {
  EXPECT_EQ(evaluated("[d.items()|list, d.keys()|list, d.values()|list, d.get('a'), d.get('x'), "
                      "d.get('x', 5)]",
                      R"({"d": {"a": 1, "b": 2}})"),
            "[[('a', 1), ('b', 2)], ['a', 'b'], [1, 2], 1, None, 5]");
  EXPECT_EQ(evaluated("[[1, 2, 1].count(1), [1, 2].index(2), (1, 2).index(1)]"), "[2, 1, 0]");
  EXPECT_EQ(evaluated("(1,).copy()"), "error: line 1: 'tuple object' has no attribute 'copy'");
}

TEST(Methods, WrongArgumentsFailWithPythonsWords) {
  EXPECT_EQ(evaluated("'a'.split('')"), "error: line 1: empty separator");
  EXPECT_EQ(evaluated("'a'.strip(1)"), "error: line 1: strip arg must be None or str, not int");
  EXPECT_EQ(evaluated("'a'.upper(1)"),
            "error: line 1: upper() takes at most 0 arguments (1 given)");
  EXPECT_EQ(evaluated("'a'.split(foo=1)"),
            "error: line 1: split() got an unexpected keyword argument 'foo'");
  EXPECT_EQ(evaluated("'a'.replace('b')"),
            "error: line 1: replace() missing required argument 'new'");
  EXPECT_EQ(evaluated("'-'.join([1])"),
            "error: line 1: sequence item 0: expected str instance, int found");
  EXPECT_EQ(evaluated("'a'.index('b')"), "error: line 1: substring not found");
  EXPECT_EQ(evaluated("{}.get([])"), "error: line 1: unhashable type: 'list'");
  EXPECT_EQ(evaluated("'a'.startswith(1)"),
            "error: line 1: startswith first arg must be str or a tuple of str, not int");
}

TEST(Methods, GrowthOfATextIsChargedFirst) {
  Meter meter(1000);
  const Value text = Value::text(std::string(10'000, 'a'));
  const auto name = find_method(text, "replace");
  ASSERT_TRUE(name.has_value());
  const Arguments arguments{{Value::text("a"), Value::text(std::string(10'000, 'b'))}, {}};
  EXPECT_TRUE(call_method(BoundMethod{text, *name}, arguments, meter).ok());
  EXPECT_TRUE(meter.is_exhausted());
}

}  // namespace
}  // namespace sightline::python
