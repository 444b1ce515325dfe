// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/processor/python_float.h"

#include "common/base/check.h"

namespace sightline::processor {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide kOne = 1;

// Rounds digits · 2^exponent to 53 binary digits. has_rest means that the exact value has a rest
// below the last digit. `digits` then has at least 55 binary digits, and so the rest cannot change
// the kept digits except by rounding.
PythonFloat rounded(Wide digits, int exponent, bool has_rest) {
  while (digits < kOne << 52U) {
    digits *= 2;
    --exponent;
  }
  bool is_half = false;
  while (digits >= kOne << 53U) {
    has_rest = has_rest || is_half;
    is_half = digits % 2 == 1;
    digits /= 2;
    ++exponent;
  }
  if (is_half && (has_rest || digits % 2 == 1)) ++digits;
  if (digits == kOne << 53U) {
    digits /= 2;
    ++exponent;
  }
  return {static_cast<std::uint64_t>(digits), exponent};
}

// The part of a number before the point, and whether it has a part after the point.
struct Parts {
  std::uint64_t whole = 0;
  bool has_fraction = false;
};

Parts parts_of(const PythonFloat& a) {
  SL_CHECK(a.exponent < 12);  // less than 2^64
  Parts parts{.whole = a.digits};
  for (int i = 0; i < a.exponent; ++i) parts.whole *= 2;
  for (int i = 0; i < -a.exponent; ++i) {
    parts.has_fraction = parts.has_fraction || parts.whole % 2 == 1;
    parts.whole /= 2;
  }
  return parts;
}

}  // namespace

PythonFloat true_division(std::uint64_t a, std::uint64_t b) {
  SL_CHECK(a > 0 && b > 0);
  Wide dividend = a;
  int exponent = 0;
  // The dividend gets as many bits as possible. The quotient then has more digits than the result.
  while (dividend < kOne << 127U) {
    dividend *= 2;
    --exponent;
  }
  return rounded(dividend / b, exponent, dividend % b != 0);
}

PythonFloat quotient(const PythonFloat& a, const PythonFloat& b) {
  const Wide dividend = Wide{a.digits} << 70U;
  return rounded(dividend / b.digits, a.exponent - b.exponent - 70, dividend % b.digits != 0);
}

PythonFloat product(const PythonFloat& a, const PythonFloat& b) {
  return rounded(Wide{a.digits} * b.digits, a.exponent + b.exponent, false);
}

PythonFloat square_root(const PythonFloat& a) {
  // Only an even exponent can be halved.
  const int shift = a.exponent % 2 == 0 ? 72 : 73;
  const Wide square = Wide{a.digits} << static_cast<unsigned>(shift);
  Wide root = 0;
  for (Wide digit = kOne << 63U; digit > 0; digit /= 2) {
    if ((root + digit) * (root + digit) <= square) root += digit;
  }
  return rounded(root, (a.exponent - shift) / 2, root * root != square);
}

std::uint64_t floor_of(const PythonFloat& a) { return parts_of(a).whole; }

std::uint64_t ceiling_of(const PythonFloat& a) {
  const Parts parts = parts_of(a);
  return parts.whole + (parts.has_fraction ? 1 : 0);
}

}  // namespace sightline::processor
