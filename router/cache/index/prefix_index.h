// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"

#include "router/cache/keys/block_key.h"
#include "router/cache/operations/operation.h"

namespace sightline::index {

using operations::Tier;

// Leading blocks of a prompt that one engine holds, as three consecutive runs. Their sum is the
// number of leading blocks held anywhere.
struct CacheOverlap {
  CacheId engine;
  std::uint32_t gpu_blocks = 0;      // held on the GPU, from the first block on
  std::uint32_t cpu_blocks = 0;      // after those: held on the CPU or the GPU
  std::uint32_t storage_blocks = 0;  // after those: held on any tier
  friend bool operator==(const CacheOverlap&, const CacheOverlap&) = default;
};

// Engines that hold at least the first block, ordered by engine. Absent engines hold none of it.
struct Overlaps {
  std::vector<CacheOverlap> engines;

  [[nodiscard]] CacheOverlap of(CacheId engine) const {
    const auto found = std::lower_bound(
        engines.begin(), engines.end(), engine,
        [](const CacheOverlap& overlap, CacheId id) { return overlap.engine < id; });
    if (found == engines.end() || found->engine != engine) return {.engine = engine};
    return *found;
  }
};

// Answers: how many leading blocks of a prompt does each engine hold?
//
// A set of (engine, tier, key): storing twice is storing once; copies are counted before this.
// At its capacity an index may refuse or evict blocks, which is counted; it never claims a block
// that was not stored or has been removed.
// Thread safety: all methods from any thread. Of an operation on many blocks match() may see the
// first ones alone; a drop() meanwhile ends it.
class PrefixIndex {
 public:
  virtual ~PrefixIndex() = default;

  [[nodiscard]] virtual Overlaps match(std::span<const keys::BlockKey> prompt) const = 0;

  virtual void store(CacheId engine, Tier tier, std::span<const keys::BlockKey> blocks) = 0;
  // Removing what is not held changes nothing.
  virtual void remove(CacheId engine, Tier tier, std::span<const keys::BlockKey> blocks) = 0;
  // Forgets all that the engine holds, on all tiers.
  virtual void drop(CacheId engine) = 0;
  // Likewise, where it is known which blocks these are: takes time for them alone.
  virtual void drop_known(CacheId engine, std::span<const keys::BlockKey> blocks) = 0;

  // Distinct blocks that the engine holds on its GPU.
  [[nodiscard]] virtual std::uint64_t blocks(CacheId engine) const = 0;
  // Distinct keys held by anybody on any tier.
  [[nodiscard]] virtual std::uint64_t blocks_total() const = 0;
  // Blocks not taken, or given up, because the index was full.
  [[nodiscard]] virtual std::uint64_t refused_total() const = 0;
  // Of these, the engine's since it was last dropped.
  [[nodiscard]] virtual std::uint64_t refused(CacheId engine) const = 0;

  // Everything held, in ascending order: for dumps and comparisons, walks the whole index. Each was
  // held at some moment of the call; what is stored and removed meanwhile may be there or not.
  [[nodiscard]] virtual std::vector<keys::BlockKey> held(CacheId engine, Tier tier) const = 0;
};

}  // namespace sightline::index
