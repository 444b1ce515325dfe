// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "router/cache/keys/block_key.h"
#include "router/cache/operations/operation.h"

namespace sightline::operations {

// The finalizer of splitmix64 (Steele, Lea, Flood 2014): a bijection of 64 bits in which every bit
// of the key reaches every bit of the result, so that keys which are related do not cancel out in
// an xor. Not for secrets.
constexpr std::uint64_t mixed(keys::BlockKey key) {
  std::uint64_t z = key.value + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

// A set of blocks in 16 bytes, whatever the order they came in. Sets of equal digests are equal but
// for a chance of 2^-64.
struct TierDigest {
  std::uint64_t count = 0;      // blocks
  std::uint64_t mixed_xor = 0;  // of mixed() of each

  constexpr void add(keys::BlockKey key) {  // which is not in it
    ++count;
    mixed_xor ^= mixed(key);
  }
  constexpr void remove(keys::BlockKey key) {  // which is in it
    --count;
    mixed_xor ^= mixed(key);
  }

  bool operator==(const TierDigest&) const = default;
};

// What a cache holds, per tier.
struct CacheDigest {
  std::array<TierDigest, kTierCount> tiers{};

  constexpr TierDigest& of(Tier tier) { return tiers[static_cast<std::size_t>(tier)]; }
  [[nodiscard]] constexpr const TierDigest& of(Tier tier) const {
    return tiers[static_cast<std::size_t>(tier)];
  }

  bool operator==(const CacheDigest&) const = default;
};

}  // namespace sightline::operations
