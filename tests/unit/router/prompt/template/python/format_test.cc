// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/format.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::python {
namespace {

using test::evaluated;

TEST(Format, PercentConvertsAsPythonDoes) {
  EXPECT_EQ(evaluated("'%s|%r|%d|%5.2f|%-4s|%03d|%x|%%' % ('a', 'b', 3.9, 2.345, 'é', 7, 255)"),
            "a|'b'|3| 2.35|é   |007|ff|%");
  EXPECT_EQ(evaluated("'%(a)s-%(b)s' % {'a': 1, 'b': none}"), "1-None");
  EXPECT_EQ(evaluated("'%.2s' % 'aéb'"), "aé");
  EXPECT_EQ(evaluated("'x' % []"), "x");
}

TEST(Format, PercentRefusesWrongArguments) {
  EXPECT_EQ(evaluated("'%s' % ()"), "error: line 1: not enough arguments for format string");
  EXPECT_EQ(evaluated("'x' % 1"),
            "error: line 1: not all arguments converted during string formatting");
  EXPECT_EQ(evaluated("'%d' % 'a'"),
            "error: line 1: %d format: a real number is required, not str");
  EXPECT_EQ(evaluated("'%' % 1"), "error: line 1: incomplete format");
  EXPECT_EQ(evaluated("'%99999999999d' % 1"), "error: line 1: format: field width above 1000");
  EXPECT_EQ(evaluated("'%d' % 1e300"), "error: line 1: format: number beyond 64 bits");
}

TEST(Format, BracesTakePlacesAndNames) {
  EXPECT_EQ(evaluated("'{} {} {{}}'.format(1, 'a')"), "1 a {}");
  EXPECT_EQ(evaluated("'{1}{0}{x}'.format(1, 2, x=none)"), "21None");
  EXPECT_EQ(evaluated("'{}'.format()"),
            "error: line 1: Replacement index 0 out of range for positional args tuple");
  EXPECT_EQ(evaluated("'}'.format()"), "error: line 1: Single '}' encountered in format string");
  EXPECT_EQ(evaluated("'{0.__class__}'.format(1)"),
            "error: line 1: str.format: only {}, {0} and {name} are supported");
}

}  // namespace
}  // namespace sightline::python
