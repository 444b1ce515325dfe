// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "router/cache/keys/block_key.h"
#include "router/cache/operations/operation.h"

namespace sightline::operations {

// Mixes a key with the finalizer of splitmix64 (Steele, Lea, Flood 2014). It is a bijection of 64
// bits. Every bit of the key reaches every bit of the result. Without it, related keys could cancel
// out in an xor. It is not for secrets.
constexpr std::uint64_t mixed(keys::BlockKey key) {
  std::uint64_t z = key.value + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

// A set of blocks in 16 bytes. The order of additions does not matter. Two different sets have
// equal digests with a chance of 2^-64. An agent and a router compare them to detect that an index
// has diverged.
struct TierDigest {
  // Number of blocks.
  std::uint64_t count = 0;
  // Xor of mixed() of each block.
  std::uint64_t mixed_xor = 0;

  // Adds a block. The caller makes sure that the set does not contain it.
  constexpr void add(keys::BlockKey key) {
    ++count;
    mixed_xor ^= mixed(key);
  }
  // Removes a block. The caller makes sure that the set contains it.
  constexpr void remove(keys::BlockKey key) {
    --count;
    mixed_xor ^= mixed(key);
  }

  bool operator==(const TierDigest&) const = default;
};

// The digest of one rank's cache: a set of blocks for each tier.
struct CacheDigest {
  // Indexed by Tier.
  std::array<TierDigest, kTierCount> tiers{};

  // Returns the set of one tier.
  constexpr TierDigest& of(Tier tier) { return tiers[static_cast<std::size_t>(tier)]; }
  [[nodiscard]] constexpr const TierDigest& of(Tier tier) const {
    return tiers[static_cast<std::size_t>(tier)];
  }

  bool operator==(const CacheDigest&) const = default;
};

}  // namespace sightline::operations
