// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// libFuzzer's main() calls this function.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  sightline::fuzz::run({bytes, size});
  return 0;
}
