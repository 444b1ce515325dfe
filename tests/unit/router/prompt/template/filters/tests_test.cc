// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::filters {
namespace {

using test::evaluated;

// Returns which of the values `{undefined, none, true, 1, 1.5, "a", [], {}, (), generator}` pass.
std::string passing(const std::string& test) {
  std::string out;
  const std::string values[] = {"x",   "none", "true", "1",  "1.5",
                                "'a'", "[]",   "{}",   "()", "([1]|select)"};
  for (const std::string& value : values) {
    const std::string result = evaluated(value + " is " + test);
    out += result == "True" ? '1' : result == "False" ? '0' : 'e';
  }
  return out;
}

TEST(Tests, KindTestsFollowJinja2) {
  EXPECT_EQ(passing("defined"), "0111111111");
  EXPECT_EQ(passing("undefined"), "1000000000");
  EXPECT_EQ(passing("none"), "0100000000");
  EXPECT_EQ(passing("boolean"), "0010000000");
  EXPECT_EQ(passing("true"), "0010000000");
  EXPECT_EQ(passing("false"), "0000000000");
  EXPECT_EQ(passing("integer"), "0001000000");
  EXPECT_EQ(passing("float"), "0000100000");
  EXPECT_EQ(passing("number"), "0011100000");
  EXPECT_EQ(passing("string"), "0000010000");
  EXPECT_EQ(passing("mapping"), "0000000100");
  EXPECT_EQ(passing("sequence"), "1000011110");
  EXPECT_EQ(passing("iterable"), "1000011111");
  EXPECT_EQ(passing("not string"), "1111101111");
}

TEST(Tests, TestsWithArgumentsCompareAndDivide) {
  EXPECT_EQ(evaluated("[3 is odd, 3 is even, 9 is divisibleby 3, 9 is divisibleby(2), "
                      "1 is eq 1.0, 1 is ne 2, 1 is lt 2, 2 is ge(2), 'a' is in 'abc', "
                      "1 is sameas 1.0, none is sameas none, 'ab' is lower, 'AB' is upper]"),
            "[True, False, True, False, True, True, True, True, True, False, True, True, True]");
  EXPECT_EQ(evaluated("range is callable and 'a'.upper is callable"), "True");
}

TEST(Tests, WrongUseIsAnError) {
  EXPECT_EQ(evaluated("1 is nosuch"), "error: line 1: No test named 'nosuch'.");
  EXPECT_EQ(evaluated("1 is eq"), "error: line 1: test 'eq' takes 1 arguments");
  EXPECT_EQ(evaluated("'a' is divisibleby 0 "),
            "error: line 1: not all arguments converted during string formatting");
  EXPECT_EQ(evaluated("1 is divisibleby 0"), "error: line 1: integer division or modulo by zero");
}

}  // namespace
}  // namespace sightline::filters
