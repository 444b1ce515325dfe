// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/sha256.h"

#include <gtest/gtest.h>

namespace sightline::core {
namespace {

TEST(Digest, EqualsThePublishedVectorOfFips180) {
  EXPECT_EQ(to_hex(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace sightline::core
