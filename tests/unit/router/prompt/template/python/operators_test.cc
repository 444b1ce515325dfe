// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/prompt/template/python/operators.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/support/rendering.h"

namespace sightline::python {
namespace {

using test::evaluated;

TEST(Operators, IntegersRoundTowardsMinusInfinity) {
  EXPECT_EQ(evaluated("[7 // 2, -7 // 2, 7 // -2, -7 % 3, 7 % -3, 7 / 2, 2 ** 10, 2 ** -1]"),
            "[3, -4, -4, 2, -2, 3.5, 1024, 0.5]");
  EXPECT_EQ(evaluated("[7.5 // 2, -7.5 // 2, -7.5 % 2, 7.5 % -2, true + true]"),
            "[3.0, -4.0, 0.5, -0.5, 2]");
  EXPECT_EQ(evaluated("1 / 0"), "error: line 1: division by zero");
  EXPECT_EQ(evaluated("1 % 0"), "error: line 1: integer division or modulo by zero");
}

TEST(Operators, IntegersBeyond64BitsAreRefusedNotWrapped) {
  for (const char* expression :
       {"9223372036854775807 + 1", "-9223372036854775807 - 2", "4611686018427387904 * 2", "3 ** 41",
        "big + 1", "-big", "(-9223372036854775807 - 1) // -1"}) {
    EXPECT_EQ(evaluated(expression, R"({"big": 123456789012345678901})"),
              "error: line 1: integers beyond 64 bits are not supported")
        << expression;
  }
  EXPECT_EQ(evaluated("[big, big == big, big == 1, big > 1]", R"({"big": 123456789012345678901})"),
            "[123456789012345678901, True, False, True]");
}

TEST(Operators, TextsAndListsConcatenateOnlyWithTheirKind) {
  EXPECT_EQ(evaluated("'a' + 'b' ~ 1 ~ none"), "ab1None");
  EXPECT_EQ(evaluated("[1] + [2]"), "[1, 2]");
  EXPECT_EQ(evaluated("'ab' * 2 + 3 * 'c' + 'd' * -1"), "ababccc");
  EXPECT_EQ(evaluated("[1] * 2"), "[1, 1]");
  EXPECT_EQ(evaluated("'a' + 1"), "error: line 1: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(evaluated("1 + 'a'"),
            "error: line 1: unsupported operand type(s) for +: 'int' and 'str'");
  EXPECT_EQ(evaluated("[1] + (2,)"),
            "error: line 1: can only concatenate list (not \"tuple\") to list");
  EXPECT_EQ(evaluated("x + 'a'"), "error: line 1: 'x' is undefined");
  EXPECT_EQ(evaluated("'a' + x"), "error: line 1: 'x' is undefined");
}

TEST(Operators, ComparesAcrossNumbersAndWithinKinds) {
  EXPECT_EQ(evaluated("[1 == 1.0, true == 1, '1' == 1, none == false, [1, 2] == [1, 2.0], "
                      "[1] == (1,), {'a': [1]} == {'a': [1]}, {'a': 1} == {'b': 1}]"),
            "[True, True, False, False, True, False, True, False]");
  EXPECT_EQ(evaluated("['a' < 'é', 'é' < '😀', 1 < 1.5, [1, 2] < [1, 3], [1] < [1, 0], 2 >= 2]"),
            "[True, True, True, True, True, True]");
  EXPECT_EQ(evaluated("1 < 'a'"),
            "error: line 1: '<' not supported between instances of 'int' and 'str'");
  EXPECT_EQ(evaluated("1 < 2 < 3 > 5"), "False");
}

TEST(Operators, MembershipDependsOnTheContainer) {
  EXPECT_EQ(evaluated("['b' in 'abc', '' in '', 1 in [1.0], 'a' in {'a': 1}, 1 in {'a': 1}, "
                      "2 not in (1, 2), 'x' in undefined_name]"),
            "[True, True, True, True, False, False, False]");
  EXPECT_EQ(evaluated("1 in 'a'"),
            "error: line 1: 'in <string>' requires string as left operand, not int");
  EXPECT_EQ(evaluated("1 in none"), "error: line 1: argument of type 'NoneType' is not iterable");
  EXPECT_EQ(evaluated("[] in {}"), "error: line 1: unhashable type: 'list'");
}

TEST(Operators, RepetitionIsChargedFirst) {
  Meter meter(1000);
  const auto text = arithmetic(Arithmetic::Multiply, Value::text("ab"),
                               Value::integer(std::int64_t{1} << 60), meter);
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(meter.is_exhausted());
  Meter list_meter(1000);
  const auto list = arithmetic(Arithmetic::Multiply, Value::list({Value::none()}),
                               Value::integer(std::int64_t{1} << 60), list_meter);
  ASSERT_TRUE(list.ok());
  EXPECT_TRUE(list_meter.is_exhausted());
}

}  // namespace
}  // namespace sightline::python
