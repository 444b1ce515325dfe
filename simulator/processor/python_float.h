// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

// Python's float (IEEE 754 binary64, rounded half to even) worked out with integers: slow, and free
// of what a compiler or a processor may do to a last digit. Numbers above 0 only; those of image
// sizes stay far from the ends of the exponent's range.
namespace sightline::processor {

// digits · 2^exponent, with 2^52 <= digits < 2^53.
struct PythonFloat {
  std::uint64_t digits = 0;
  int exponent = 0;
};

// a / b of two ints above 0: one rounding of the exact quotient, however long the ints are.
PythonFloat true_division(std::uint64_t a, std::uint64_t b);

PythonFloat quotient(const PythonFloat& a, const PythonFloat& b);
PythonFloat product(const PythonFloat& a, const PythonFloat& b);
// math.sqrt
PythonFloat square_root(const PythonFloat& a);

// math.floor and math.ceil of numbers below 2^64.
std::uint64_t floor_of(const PythonFloat& a);
std::uint64_t ceiling_of(const PythonFloat& a);

}  // namespace sightline::processor
