// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// The entry of libFuzzer's main().
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  sightline::fuzz::run({bytes, size});
  return 0;
}
