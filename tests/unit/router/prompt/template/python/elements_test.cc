// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::python {
namespace {

using test::evaluated;

constexpr const char* kVariables =
    R"({"s": "aé漢😀", "l": [0, 1, 2, 3, 4], "d": {"items": 3, "a": {"b": "c"}}, "e": []})";

TEST(Elements, AttributesFindMethodsFirstAndItemsFindItemsFirst) {
  EXPECT_EQ(evaluated("d['items']", kVariables), "3");
  EXPECT_EQ(evaluated("d.items is callable", kVariables), "True");
  EXPECT_EQ(evaluated("d.a.b ~ d['a']['b']", kVariables), "cc");
  EXPECT_EQ(evaluated("d['keys'] is callable", kVariables), "True");
}

TEST(Elements, MissingElementsAreUndefined) {
  EXPECT_EQ(evaluated("[d.x, d['x'], l[9], l[-6], s[9], none.x, 5[0]]", kVariables),
            "[Undefined, Undefined, Undefined, Undefined, Undefined, Undefined, Undefined]");
  EXPECT_EQ(evaluated("d.x.y", kVariables), "error: line 1: 'dict object' has no attribute 'x'");
  EXPECT_EQ(evaluated("l[9].y", kVariables), "error: line 1: list object has no element 9");
  EXPECT_EQ(evaluated("x['y']", kVariables), "error: line 1: 'x' is undefined");
  EXPECT_EQ(evaluated("l.append(1)", kVariables),
            "error: line 1: 'list object' has no attribute 'append'");
  EXPECT_EQ(evaluated("s.__class__.x", kVariables),
            "error: line 1: 'str object' has no attribute '__class__'");
}

TEST(Elements, IndexesCountCodePointsAndFromTheEnd) {
  EXPECT_EQ(evaluated("s[1] ~ s[-1] ~ s.2 ~ l[-1] ~ l[true]", kVariables), "é😀漢41");
}

TEST(Elements, SlicesClampAsPythonDoes) {
  EXPECT_EQ(evaluated("[l[1:3], l[-2:], l[:-2], l[9:], l[::-1], l[::2], l[3:0:-2], l[-99:99]]",
                      kVariables),
            "[[1, 2], [3, 4], [0, 1, 2], [], [4, 3, 2, 1, 0], [0, 2, 4], [3, 1], "
            "[0, 1, 2, 3, 4]]");
  EXPECT_EQ(evaluated("[s[1:3], s[::-1], s[-1:], s[2:1], s[:none]]", kVariables),
            "['é漢', '😀漢éa', '😀', '', 'aé漢😀']");
  EXPECT_EQ(evaluated("l[::9223372036854775807] ~ l[-9223372036854775807:] ~ e[::-1]", kVariables),
            "[0][0, 1, 2, 3, 4][]");
  EXPECT_EQ(evaluated("l[::0]", kVariables), "error: line 1: slice step cannot be zero");
  EXPECT_EQ(evaluated("none[1:]", kVariables),
            "error: line 1: 'NoneType' object is not subscriptable");
  EXPECT_EQ(evaluated("x[1:]", kVariables), "error: line 1: 'x' is undefined");
}

TEST(Elements, LengthAndIterationFollowTheKind) {
  EXPECT_EQ(
      evaluated("[s|length, l|length, d|length, x|length, s|list, d|list, x|list]", kVariables),
      "[4, 5, 2, 0, ['a', 'é', '漢', '😀'], ['items', 'a'], []]");
  EXPECT_EQ(evaluated("5|length"), "error: line 1: object of type 'int' has no len()");
  EXPECT_EQ(evaluated("(l|select)|length", kVariables),
            "error: line 1: object of type 'generator' has no len()");
  EXPECT_EQ(evaluated("5|list"), "error: line 1: 'int' object is not iterable");
}

}  // namespace
}  // namespace sightline::python
