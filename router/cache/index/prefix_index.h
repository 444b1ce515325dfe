// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ids.h"

#include "router/cache/keys/block_key.h"
#include "router/cache/operations/digest.h"
#include "router/cache/operations/operation.h"

namespace sightline::index {

using operations::Tier;

// The leading blocks of a prompt that one cache holds, as three consecutive runs. Their sum is the
// number of leading blocks that it holds on any tier.
struct CacheOverlap {
  CacheId cache;
  std::uint32_t gpu_blocks = 0;      // held on the GPU, from the first block on.
  std::uint32_t cpu_blocks = 0;      // after those: held on the CPU or the GPU.
  std::uint32_t storage_blocks = 0;  // after those: held on any tier.
  friend bool operator==(const CacheOverlap&, const CacheOverlap&) = default;
};

// The caches that hold at least the first block, ordered by cache. An absent cache holds
// no leading block.
struct Overlaps {
  std::vector<CacheOverlap> caches;

  // Returns the overlap of one cache. It is zero for an absent cache.
  [[nodiscard]] CacheOverlap of(CacheId cache) const {
    const auto found = std::lower_bound(
        caches.begin(), caches.end(), cache,
        [](const CacheOverlap& overlap, CacheId id) { return overlap.cache < id; });
    if (found == caches.end() || found->cache != cache) return {.cache = cache};
    return *found;
  }
};

// Answers one question: how many leading blocks of a prompt does each cache hold?
//
// It never claims a block that was not stored, or that was removed.
// Thread safety: any thread may call any method. During an operation on many blocks, match() may
// see the first blocks of the operation only.
class IndexReader {
 public:
  virtual ~IndexReader() = default;

  // Returns the overlap of each cache with the prompt's block keys, from the first key on.
  [[nodiscard]] virtual Overlaps match(std::span<const keys::BlockKey> prompt) const = 0;
};

// Applies operations to caches. An index holds a set of (cache, tier, key). At its capacity it may
// refuse or evict blocks, and counts them.
// Thread safety: any thread may call any method, but the operations of one cache come one after
// another.
class IndexWriter {
 public:
  virtual ~IndexWriter() = default;

  // Applies one operation to one cache.
  virtual void apply(CacheId cache, const operations::Operation& operation) = 0;

  // Does the same as a Clear, but frees the memory in steps. reclaim_some() frees a step. Later
  // operations free at least as many blocks as they bring. The call takes a microsecond or two,
  // however many blocks the cache holds.
  virtual void clear_later(CacheId cache) = 0;
  // Frees some memory, for about 0.1 ms. Returns true if there is more to free.
  virtual bool reclaim_some() = 0;
};

// The limits of one cache in the index, and whether it reached them.
struct CacheLimits {
  // Blocks that the engine has on its GPU. Empty if unknown. The cache's bound is then an equal
  // share of the index.
  std::optional<std::uint64_t> engine_blocks;
  std::uint64_t refused = 0;  // see IndexStatistics::refused()
  // Since the last clear, the index dropped all blocks of the cache because it exceeded its bound.
  // It may not exceed its bound again until the next clear.
  bool gave_way = false;

  bool operator==(const CacheLimits&) const = default;
};

// The state of an index, for metrics, dumps and comparisons.
// Thread safety: any thread may call any method.
class IndexStatistics {
 public:
  virtual ~IndexStatistics() = default;

  // Returns the distinct blocks that the cache holds on its GPU.
  [[nodiscard]] virtual std::uint64_t blocks(CacheId cache) const = 0;
  // Returns the distinct keys that any cache holds on any tier. Keys of a cleared cache count until
  // their memory is freed.
  [[nodiscard]] virtual std::uint64_t blocks_total() const = 0;
  // Returns the digest of the cache's blocks, which other processes can compare. Each operation
  // updates it.
  [[nodiscard]] virtual operations::CacheDigest digest(CacheId cache) const = 0;
  // Returns how many blocks the index refused or dropped because it was full.
  [[nodiscard]] virtual std::uint64_t refused_total() const = 0;
  // Returns how many of these belong to the cache, since its last clear.
  [[nodiscard]] virtual std::uint64_t refused(CacheId cache) const = 0;
  // Returns the limits of the cache.
  [[nodiscard]] virtual CacheLimits limits(CacheId cache) const = 0;
  // Returns true if so much is free that the refused blocks are worth a new request to their
  // engines.
  [[nodiscard]] virtual bool has_room() const = 0;

  // Returns all blocks of a cache on a tier, in ascending order. It walks the whole index. Each
  // returned block was in the index at some moment of the call. Blocks stored or removed during the
  // call may be missing or present.
  [[nodiscard]] virtual std::vector<keys::BlockKey> held(CacheId cache, Tier tier) const = 0;
};

}  // namespace sightline::index
