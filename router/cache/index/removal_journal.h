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

// Removals remembered. They lie in chunks, which a rank takes one by one as it removes blocks:
// one that removes nothing takes no memory. When all chunks are taken, the rank that has the most
// of them gives up its oldest, so that a thousand ranks that evict at once keep 5,000 each.
struct JournalLimits {
  std::size_t chunks_max = 21'700;            // 64 MiB of all ranks together
  std::size_t chunks_per_engine_max = 1'024;  // 262,144 removals
  // Ranks without a chunk that are remembered: those that left are forgotten beyond it.
  std::size_t idle_engines_max = 4'096;
};

// The latest removals of each rank from an index, in their order, so that it can be asked
// afterwards whether blocks that were claimed at some moment have been withdrawn since.
//
// A removal is written after the index has it, and a position is read before the index is asked:
// whatever was claimed at a position and is withdrawn later stands at or behind that position.
// Thread safety: all methods from any thread. Nobody waits for longer than it takes to look at one
// chunk, some microseconds.
class RemovalJournal {
 public:
  explicit RemovalJournal(const JournalLimits& limits = {});

  // Rises with every call of the next two that has ended.
  [[nodiscard]] std::uint64_t position() const { return position_.load(std::memory_order_acquire); }

  void removed(CacheId cache, std::span<const keys::BlockKey> blocks);
  // All blocks of the rank at once. What it removed before is told by this alone.
  void dropped(CacheId cache);

  // True if one of the blocks was withdrawn from the rank after the position and before the call,
  // or all of them. Nothing: not as far as is known, but removals of the rank since the position
  // are no longer remembered.
  [[nodiscard]] std::optional<bool> withdrawn_since(std::uint64_t position, CacheId cache,
                                                    std::span<const keys::BlockKey> blocks) const;

  // Memory taken for removals.
  [[nodiscard]] std::size_t bytes() const;

  static constexpr std::size_t kChunkRemovals = 256;

 private:
  struct Chunk {
    std::uint64_t first = 0;  // position of its first removal
    std::size_t size = 0;
    std::array<std::uint32_t, kChunkRemovals> later{};  // position - first
    std::array<keys::BlockKey, kChunkRemovals> blocks{};
  };
  struct Log {
    std::deque<std::unique_ptr<Chunk>> chunks;  // the oldest first
    std::uint64_t given_up = 0;                 // chunks before those
    std::uint64_t complete_from = 0;            // removals from this position on are remembered
    std::uint64_t dropped_before = 0;           // the position after the last drop
  };
  // What withdrawn_since has found, chunk by chunk.
  struct Search;

  void write(Log& log, std::uint64_t position, std::span<const keys::BlockKey> blocks)
      SL_REQUIRES(mutex_);
  Chunk& chunk_for(Log& log, std::uint64_t position) SL_REQUIRES(mutex_);
  std::unique_ptr<Chunk> take_chunk(Log& log) SL_REQUIRES(mutex_);
  std::unique_ptr<Chunk> give_up_oldest(Log& log) const SL_REQUIRES(mutex_);
  void forget_idle() SL_REQUIRES(mutex_);
  void advance_beyond(std::uint64_t position) SL_REQUIRES(mutex_);
  bool look_at_next(Search& search) const;

  const JournalLimits limits_;
  mutable Mutex mutex_;
  std::atomic<std::uint64_t> position_{0};  // changed under the mutex, read by anybody
  std::unordered_map<CacheId, Log> logs_ SL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Chunk>> free_ SL_GUARDED_BY(mutex_);
  std::size_t chunks_made_ SL_GUARDED_BY(mutex_) = 0;
  // Ranks that are not known may have removed before.
  std::uint64_t idle_forgotten_before_ SL_GUARDED_BY(mutex_) = 0;
};

}  // namespace sightline::index
