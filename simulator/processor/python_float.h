// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

// Python's float (IEEE 754 binary64, rounded half to even), computed with integers. It is slow, but
// no compiler or processor can change its last digit. Only for numbers above 0. The numbers of
// image sizes stay far from the limits of the exponent.
namespace sightline::processor {

// The value digits · 2^exponent, with 2^52 <= digits < 2^53.
struct PythonFloat {
  std::uint64_t digits = 0;
  int exponent = 0;
};

// Returns a / b of two integers above 0. The exact quotient is rounded once, even for large
// integers.
PythonFloat true_division(std::uint64_t a, std::uint64_t b);

// The quotient and the product, each rounded once.
PythonFloat quotient(const PythonFloat& a, const PythonFloat& b);
PythonFloat product(const PythonFloat& a, const PythonFloat& b);
// Python's math.sqrt().
PythonFloat square_root(const PythonFloat& a);

// Python's math.floor() and math.ceil(), for numbers below 2^64.
std::uint64_t floor_of(const PythonFloat& a);
std::uint64_t ceiling_of(const PythonFloat& a);

}  // namespace sightline::processor
