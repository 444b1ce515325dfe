// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::filters {
namespace {

using test::evaluated;

constexpr const char* kVariables =
    R"({"m": [{"r": "b", "n": 2, "c": {"x": 1}}, {"r": "A", "n": 1}, {"r": "a", "n": 2}],
        "w": ["b", "A", "a", "B"]})";

TEST(SequenceFilters, TakeEndsAndLengths) {
  EXPECT_EQ(
      evaluated("[w|first, w|last, w|length, w|count, []|first, []|last, 'ab'|last]", kVariables),
      "['b', 'B', 4, 4, Undefined, Undefined, 'b']");
  EXPECT_EQ(evaluated("w|select|last", kVariables),
            "error: line 1: 'generator' object is not reversible");
  EXPECT_EQ(evaluated("['aé'|reverse, w|reverse|list]", kVariables),
            "['éa', ['B', 'a', 'A', 'b']]");
}

TEST(SequenceFilters, SortIgnoresCaseAndKeepsTheOrderOfEquals) {
  EXPECT_EQ(evaluated("[w|sort, w|sort(case_sensitive=true), w|sort(reverse=true)]", kVariables),
            "[['A', 'a', 'b', 'B'], ['A', 'B', 'a', 'b'], ['b', 'B', 'A', 'a']]");
  EXPECT_EQ(evaluated("m|sort(attribute='n,r')|map(attribute='r')|list", kVariables),
            "['A', 'a', 'b']");
  EXPECT_EQ(evaluated("m|sort(attribute='n', reverse=true)|map(attribute='r')|join", kVariables),
            "baA");
  EXPECT_EQ(evaluated("[1, 'a']|sort"),
            "error: line 1: '<' not supported between instances of 'str' and 'int'");
}

TEST(SequenceFilters, DictsortGivesPairs) {
  EXPECT_EQ(evaluated("[{'b': 1, 'A': 2}|dictsort, {'b': 1, 'A': 2}|dictsort(true), "
                      "{'b': 1, 'A': 2}|dictsort(by='value', reverse=true)]"),
            "[[('A', 2), ('b', 1)], [('A', 2), ('b', 1)], [('A', 2), ('b', 1)]]");
  EXPECT_EQ(evaluated("[1]|dictsort"), "error: line 1: 'list' object has no attribute 'items'");
  EXPECT_EQ(evaluated("{'a': 1}|items|list"), "[('a', 1)]");
  EXPECT_EQ(evaluated("'a'|items"), "error: line 1: Can only get item pairs from a mapping.");
  EXPECT_EQ(evaluated("x|items|list"), "[]");
}

TEST(SequenceFilters, MapTakesAnAttributeOrAFilter) {
  EXPECT_EQ(evaluated("[m|map(attribute='n')|list, w|map('upper')|list, "
                      "m|map(attribute='c.x', default=0)|list, w|map('replace', 'a', 'z')|list]",
                      kVariables),
            "[[2, 1, 2], ['B', 'A', 'A', 'B'], [1, 0, 0], ['b', 'A', 'z', 'B']]");
  EXPECT_EQ(evaluated("none|map('upper')|list"), "[]");
  EXPECT_EQ(evaluated("[1]|map('nosuch')"), "error: line 1: No filter named 'nosuch'.");
}

TEST(SequenceFilters, SelectKeepsWhatPassesTheTest) {
  EXPECT_EQ(evaluated("[[0, 1, 2, none]|select|list, [0, 1, 2]|reject('odd')|list, "
                      "[1, 2, 3]|select('gt', 1)|list, [1, 2]|select('==', 2)|list]"),
            "[[1, 2], [0, 2], [2, 3], [2]]");
  EXPECT_EQ(evaluated("[m|selectattr('n', 'equalto', 2)|map(attribute='r')|list, "
                      "m|rejectattr('c')|map(attribute='r')|list, "
                      "m|selectattr('c', 'defined')|list|length]",
                      kVariables),
            "[['b', 'a'], ['A', 'a'], 1]");
  EXPECT_EQ(evaluated("([]|select) is iterable and (([]|select) | string != '')"), "True");
  EXPECT_EQ(evaluated("'yes' if ([]|select) else 'no'"), "yes");
}

TEST(SequenceFilters, AggregatesCompareAndAdd) {
  EXPECT_EQ(evaluated("[[3, 1, 2]|min, w|max, m|max(attribute='n')|length, []|min, "
                      "[1, 2.5]|sum, m|sum(attribute='n', start=10)]",
                      kVariables),
            "[1, 'b', 3, Undefined, 3.5, 15]");
  EXPECT_EQ(evaluated("[w|unique|list, w|unique(true)|list]", kVariables),
            "[['b', 'A'], ['b', 'A', 'a', 'B']]");
  EXPECT_EQ(evaluated("[[1, 'a', none]|join('-'), m|join(',', attribute='r'), 'ab'|join('.')]",
                      kVariables),
            "['1-a-None', 'b,A,a', 'a.b']");
}

}  // namespace
}  // namespace sightline::filters
