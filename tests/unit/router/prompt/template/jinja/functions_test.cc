// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <string>

#include <gtest/gtest.h>

#include "router/prompt/template/jinja/evaluator.h"
#include "tests/support/rendering.h"

namespace sightline::jinja {
namespace {

using test::evaluated;

WallTime moment(int year, unsigned month, unsigned day, std::chrono::seconds of_day) {
  return WallTime(std::chrono::sys_days(std::chrono::year(year) / month / day)) + of_day;
}

TEST(Functions, RangesEqualPythons) {
  EXPECT_EQ(evaluated("[range(3)|list, range(1, 4)|list, range(5, 0, -2)|list, range(3, 1)|list]"),
            "[[0, 1, 2], [1, 2, 3], [5, 3, 1], []]");
  EXPECT_EQ(evaluated("range(0, 1, 0)"), "error: line 1: range() arg 3 must not be zero");
  EXPECT_EQ(evaluated("range('a')"),
            "error: line 1: 'str' object cannot be interpreted as an integer");
  EXPECT_EQ(evaluated("range()"), "error: line 1: range expected 1 to 3 arguments, got 0");
}

TEST(Functions, RangesAreBoundedAsInTheSandbox) {
  const std::string too_big =
      "error: line 1: Range too big. The sandbox blocks ranges larger than MAX_RANGE (100000).";
  EXPECT_EQ(evaluated("range(100000)|length"), "100000");
  EXPECT_EQ(evaluated("range(100001)"), too_big);
  EXPECT_EQ(evaluated("range(10 ** 9)"), too_big);
  EXPECT_EQ(evaluated("range(-9223372036854775807, 9223372036854775807)"), too_big);
  EXPECT_EQ(evaluated("range(9223372036854775807, -9223372036854775807, -1)"), too_big);
  EXPECT_EQ(evaluated("range(-9223372036854775807, 9223372036854775807, 9223372036854775807)|list"),
            "[-9223372036854775807, 0]");
}

TEST(Functions, DictsAreBuiltFromMappingsAndNames) {
  EXPECT_EQ(evaluated("dict({'a': 1}, b=2, a=3)"), "{'a': 3, 'b': 2}");
  EXPECT_EQ(evaluated("dict(1, 2)"), "error: line 1: dict expected at most 1 argument, got 2");
}

TEST(Functions, StrftimePrintsEnglishDatesInUtc) {
  const WallTime time = moment(2026, 3, 7, std::chrono::seconds(9 * 3600 + 5 * 60 + 3));
  EXPECT_EQ(strftime("%Y-%m-%d %H:%M:%S", time), "2026-03-07 09:05:03");
  EXPECT_EQ(strftime("%d %b %Y|%A, %B %e|%a %y %j %I %p %w %u", time),
            "07 Mar 2026|Saturday, March  7|Sat 26 066 09 AM 6 6");
  EXPECT_EQ(strftime("%F %T %D %f %% %Q %", time), "2026-03-07 09:05:03 03/07/26 000000 % %Q %");
  const WallTime new_year = moment(1999, 12, 31, std::chrono::seconds(86399));
  EXPECT_EQ(strftime("%j %I%p %y", new_year), "365 11PM 99");
}

TEST(Functions, TheClockIsAParameter) {
  RenderOptions options;
  options.now = moment(2024, 2, 29, std::chrono::seconds(0));
  EXPECT_EQ(test::rendered("{{ strftime_now('%d %b %Y') }}", "{}", options), "29 Feb 2024");
  EXPECT_EQ(evaluated("strftime_now(1)"), "error: line 1: strftime() argument 1 must be str");
}

}  // namespace
}  // namespace sightline::jinja
