// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"

#include "router/cache/keys/block_key.h"

namespace sightline::index {

// Limits of the journal. Removals are in chunks. A rank takes a chunk when it removes blocks, so a
// rank without removals uses no memory. When no chunk is free, the rank with the most chunks loses
// its oldest one. If a thousand ranks evict at the same time, each keeps 5,000 removals.
struct JournalLimits {
  // For all ranks together: 64 MiB.
  std::size_t chunks_max = 21'700;
  std::size_t chunks_per_engine_max = 1'024;  // 262,144 removals
  // How many ranks without a chunk are remembered. Beyond it they are forgotten, because they may
  // be ranks that left.
  std::size_t idle_engines_max = 4'096;
};

// The latest removals of each rank from an index, in their order. The audit asks it whether blocks
// claimed at some moment were withdrawn since.
//
// A removal is written after the index has applied it. A caller reads the position before it asks
// the index. So a block that was claimed at a position and withdrawn later is written at this
// position or a later one.
// Thread safety: any thread may call any method. A call waits for the time that a look at one chunk
// takes, some microseconds.
class RemovalJournal {
 public:
  explicit RemovalJournal(const JournalLimits& limits = {});

  // Returns the position. It has risen by the end of each call of removed() and dropped().
  [[nodiscard]] std::uint64_t position() const { return position_.load(std::memory_order_acquire); }

  // Records blocks that a rank lost.
  void removed(CacheId cache, std::span<const keys::BlockKey> blocks);
  // Records that a rank lost all blocks. This replaces its earlier removals.
  void dropped(CacheId cache);

  // Returns true if the rank lost one of the blocks, or all its blocks, after the position and
  // before the call. Empty: no loss is recorded, but the journal has forgotten removals of the
  // rank since the position.
  [[nodiscard]] std::optional<bool> withdrawn_since(std::uint64_t position, CacheId cache,
                                                    std::span<const keys::BlockKey> blocks) const;

  // Returns the memory used for removals.
  [[nodiscard]] std::size_t bytes() const;

  // Removals in one chunk.
  static constexpr std::size_t kChunkRemovals = 256;

 private:
  // Removals of one rank, each with its position and its block.
  struct RemovalChunk {
    // The position of its first removal. Each removal has its distance from there.
    std::uint64_t first = 0;
    std::size_t size = 0;
    std::array<std::uint32_t, kChunkRemovals> later{};
    std::array<keys::BlockKey, kChunkRemovals> blocks{};
  };
  // The removals of one rank that are still recorded.
  struct Log {
    std::deque<std::unique_ptr<RemovalChunk>> chunks;  // the oldest first.
    std::uint64_t given_up = 0;                        // number of dropped chunks before these.
    // All removals from this position on are recorded.
    std::uint64_t complete_from = 0;
    // The position after the last drop of all blocks.
    std::uint64_t dropped_before = 0;
  };
  // The result of withdrawn_since(), chunk by chunk.
  struct Search;

  void write(Log& log, std::uint64_t position, std::span<const keys::BlockKey> blocks)
      SL_REQUIRES(mutex_);
  RemovalChunk& chunk_for(Log& log, std::uint64_t position) SL_REQUIRES(mutex_);
  std::unique_ptr<RemovalChunk> take_chunk(Log& log) SL_REQUIRES(mutex_);
  std::unique_ptr<RemovalChunk> give_up_oldest(Log& log) const SL_REQUIRES(mutex_);
  void forget_idle() SL_REQUIRES(mutex_);
  void advance_beyond(std::uint64_t position) SL_REQUIRES(mutex_);
  bool look_at_next(Search& search) const;

  const JournalLimits limits_;
  mutable Mutex mutex_;
  std::atomic<std::uint64_t> position_{0};  // changed under the mutex, read by any thread
  std::unordered_map<CacheId, Log> logs_ SL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<RemovalChunk>> free_ SL_GUARDED_BY(mutex_);
  std::size_t chunks_made_ SL_GUARDED_BY(mutex_) = 0;
  // An unknown rank may have lost blocks before this position.
  std::uint64_t idle_forgotten_before_ SL_GUARDED_BY(mutex_) = 0;
};

}  // namespace sightline::index
