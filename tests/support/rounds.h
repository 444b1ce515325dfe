// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

namespace sightline::test {

// Rounds of a comparison of random inputs with a naive implementation. A program with sanitizers
// runs a tenth: it looks for forbidden actions, not for differences, and is ten times slower.
constexpr int rounds(int whole) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return whole / 10;
#else
  return whole;
#endif
}

}  // namespace sightline::test
