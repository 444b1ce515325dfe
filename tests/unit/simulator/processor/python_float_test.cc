// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/processor/python_float.h"

#include <cmath>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::processor {
namespace {

double value_of(const PythonFloat& a) {
  return std::ldexp(static_cast<double>(a.digits), a.exponent);
}

// Returns an integer of 1 to 53 binary digits, which a double holds exactly.
std::uint64_t random_int(Rng& rng) { return (rng.next() >> (11 + rng.below(52))) + 1; }

TEST(PythonFloat, EqualsTheMachineDouble) {
  Rng rng(5);
  for (int round = 0; round < 20'000; ++round) {
    const std::uint64_t a = random_int(rng);
    const std::uint64_t b = random_int(rng);
    const PythonFloat ratio = true_division(a, b);
    const double as_double = static_cast<double>(a) / static_cast<double>(b);
    ASSERT_EQ(value_of(ratio), as_double) << a << " " << b;
    const PythonFloat other = true_division(b, random_int(rng));
    ASSERT_EQ(value_of(quotient(ratio, other)), as_double / value_of(other)) << a << " " << b;
    ASSERT_EQ(value_of(product(ratio, other)), as_double * value_of(other)) << a << " " << b;
    ASSERT_EQ(value_of(square_root(ratio)), std::sqrt(as_double)) << a << " " << b;
    if (as_double < 0x1p53) {
      ASSERT_EQ(floor_of(ratio), static_cast<std::uint64_t>(std::floor(as_double)));
      ASSERT_EQ(ceiling_of(ratio), static_cast<std::uint64_t>(std::ceil(as_double)));
    }
  }
}

// Python divides ints of any length exactly and then rounds once.
TEST(PythonFloat, RoundsOnceAfterLongDivision) {
  EXPECT_EQ(value_of(true_division(14'039'951'777'573'604'343U, 12'845'056)),
            0x1.fcfa96deac1e3p+39);
  EXPECT_EQ(value_of(true_division(9'626'328'034'027'341'648U, 1'003'520)), 0x1.172e286d0ecdep+43);
  EXPECT_EQ(value_of(true_division(UINT64_MAX, 1)), 0x1p64);
}

}  // namespace
}  // namespace sightline::processor
