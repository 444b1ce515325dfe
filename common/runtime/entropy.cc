// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/entropy.h"

#include <unistd.h>

#include "common/base/check.h"

namespace sightline::runtime {

void fill_unguessable(std::span<std::uint8_t> bytes) {
  SL_CHECK(::getentropy(bytes.data(), bytes.size()) == 0);
}

std::uint64_t secure_random_u64() {
  std::uint64_t number = 0;
  SL_CHECK(::getentropy(&number, sizeof number) == 0);
  return number;
}

}  // namespace sightline::runtime
