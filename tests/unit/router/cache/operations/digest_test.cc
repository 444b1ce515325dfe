// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/operations/digest.h"

#include <set>

#include <gtest/gtest.h>

namespace sightline::operations {
namespace {

TEST(Digest, DoesNotDependOnTheOrder) {
  TierDigest one;
  TierDigest other;
  for (std::uint64_t key = 1; key <= 100; ++key) one.add({key});
  for (std::uint64_t key = 200; key >= 1; --key) other.add({key});
  EXPECT_NE(one, other);
  for (std::uint64_t key = 101; key <= 200; ++key) other.remove({key});
  EXPECT_EQ(one, other);
}

TEST(Digest, DistinguishesSetsOfRelatedKeys) {
  // As plain numbers the pairs {0, 3} and {1, 2} have one xor, and so have all {n, n ^ 3}.
  std::set<std::uint64_t> seen;
  for (std::uint64_t key = 0; key < 4096; key += 4) {
    for (const std::uint64_t bit : {1, 2, 3}) {
      TierDigest pair;
      pair.add({key});
      pair.add({key ^ bit});
      EXPECT_TRUE(seen.insert(pair.mixed_xor).second);
    }
  }
}

TEST(Digest, KeepsTiersApart) {
  CacheDigest gpu;
  CacheDigest cpu;
  gpu.of(Tier::Gpu).add({7});
  cpu.of(Tier::Cpu).add({7});
  EXPECT_NE(gpu, cpu);
}

// Processes of different builds compare it: these bits never change.
TEST(Digest, MixesAsTheFirstReleaseDid) {
  EXPECT_EQ(mixed({0}), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(mixed({1}), 0x910a2dec89025cc1ULL);
}

}  // namespace
}  // namespace sightline::operations
