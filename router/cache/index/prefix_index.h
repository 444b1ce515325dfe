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

// Leading blocks of a prompt that one cache holds, as three consecutive runs. Their sum is the
// number of leading blocks held anywhere.
struct CacheOverlap {
  CacheId cache;
  std::uint32_t gpu_blocks = 0;      // held on the GPU, from the first block on
  std::uint32_t cpu_blocks = 0;      // after those: held on the CPU or the GPU
  std::uint32_t storage_blocks = 0;  // after those: held on any tier
  friend bool operator==(const CacheOverlap&, const CacheOverlap&) = default;
};

// Caches that hold at least the first block, in order. Absent ones hold none of it.
struct Overlaps {
  std::vector<CacheOverlap> caches;

  [[nodiscard]] CacheOverlap of(CacheId cache) const {
    const auto found = std::lower_bound(
        caches.begin(), caches.end(), cache,
        [](const CacheOverlap& overlap, CacheId id) { return overlap.cache < id; });
    if (found == caches.end() || found->cache != cache) return {.cache = cache};
    return *found;
  }
};

// Answers: how many leading blocks of a prompt does each cache hold?
//
// It never claims a block that was not stored or has been removed.
// Thread safety: all methods from any thread. Of an operation on many blocks match() may see the
// first ones alone.
class IndexReader {
 public:
  virtual ~IndexReader() = default;

  [[nodiscard]] virtual Overlaps match(std::span<const keys::BlockKey> prompt) const = 0;
};

// Takes what happens to caches. Holds a set of (cache, tier, key). At its capacity an index may
// refuse or evict blocks, which is counted.
// Thread safety: all methods from any thread; the operations of one cache one after another.
class IndexWriter {
 public:
  virtual ~IndexWriter() = default;

  virtual void apply(CacheId cache, const operations::Operation& operation) = 0;

  // As a Clear, but the memory is given back in steps: by reclaim_some(), and by operations that
  // follow, as many blocks as they bring and more. Takes a microsecond or two, whatever is held.
  virtual void clear_later(CacheId cache) = 0;
  // Gives some memory back, for about 0.1 ms. True: there is more.
  virtual bool reclaim_some() = 0;
};

// What an index may take of a cache, and whether it did.
struct CacheLimits {
  // Blocks that its engine has room for on the GPU; nothing: not known, and its bound is an equal
  // share of the index.
  std::optional<std::uint64_t> engine_blocks;
  std::uint64_t refused = 0;  // as IndexStatistics::refused()
  // Since it was last cleared: all that it held gave way, being more than its bound, and it may not
  // go beyond that any more.
  bool gave_way = false;

  bool operator==(const CacheLimits&) const = default;
};

// What an index has, for metrics, dumps and comparisons.
// Thread safety: all methods from any thread.
class IndexStatistics {
 public:
  virtual ~IndexStatistics() = default;

  // Distinct blocks that the cache holds on its GPU.
  [[nodiscard]] virtual std::uint64_t blocks(CacheId cache) const = 0;
  // Distinct keys held by anybody on any tier, and those that a cleared
  // cache held whose memory is not given back yet.
  [[nodiscard]] virtual std::uint64_t blocks_total() const = 0;
  // What the cache holds, as anybody can compare it; kept with each operation.
  [[nodiscard]] virtual operations::CacheDigest digest(CacheId cache) const = 0;
  // Blocks not taken, or given up, because the index was full.
  [[nodiscard]] virtual std::uint64_t refused_total() const = 0;
  // Of these, the cache's since it was last cleared.
  [[nodiscard]] virtual std::uint64_t refused(CacheId cache) const = 0;
  [[nodiscard]] virtual CacheLimits limits(CacheId cache) const = 0;
  // So much is free that what was refused is worth being asked for again.
  [[nodiscard]] virtual bool has_room() const = 0;

  // Everything held, in ascending order: walks the whole index. Each was held at some moment of the
  // call; what is stored and removed meanwhile may be there or not.
  [[nodiscard]] virtual std::vector<keys::BlockKey> held(CacheId cache, Tier tier) const = 0;
};

}  // namespace sightline::index
