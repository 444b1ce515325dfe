// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/index/removal_journal.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <utility>

#include "common/base/check.h"

namespace sightline::index {

namespace {

// A set of blocks, to be searched for among very many others. One bit rules out most of them.
class BlockSet {
 public:
  explicit BlockSet(std::span<const keys::BlockKey> blocks)
      : sorted_(blocks.begin(), blocks.end()),
        is_marked_(std::bit_ceil(blocks.size() * kBitsPerBlock + 1)) {
    std::sort(sorted_.begin(), sorted_.end());
    for (const keys::BlockKey block : blocks) is_marked_[place_of(block)] = true;
  }

  [[nodiscard]] bool contains(keys::BlockKey block) const {
    return is_marked_[place_of(block)] && std::binary_search(sorted_.begin(), sorted_.end(), block);
  }

 private:
  static constexpr std::size_t kBitsPerBlock = 16;

  // No further hash is needed, because keys are as good as random.
  [[nodiscard]] std::size_t place_of(keys::BlockKey block) const {
    return block.value & (is_marked_.size() - 1);
  }

  std::vector<keys::BlockKey> sorted_;
  std::vector<bool> is_marked_;
};

}  // namespace

struct RemovalJournal::Search {
  std::uint64_t position;
  CacheId cache;
  BlockSet claimed;
  std::uint64_t next_chunk = 0;  // counted from the rank's first chunk
  bool withdrawn = false;
  bool incomplete = false;
};

RemovalJournal::RemovalJournal(const JournalLimits& limits) : limits_(limits) {
  SL_CHECK(limits.chunks_max > 0 && limits.chunks_per_engine_max > 0);
}

void RemovalJournal::advance_beyond(std::uint64_t position) {
  position_.store(std::max(position_.load(std::memory_order_relaxed), position + 1),
                  std::memory_order_release);
}

void RemovalJournal::removed(CacheId cache, std::span<const keys::BlockKey> blocks) {
  std::optional<std::uint64_t> position;
  while (!blocks.empty()) {
    // One hold of the lock for each chunk keeps the wait of other threads short.
    const auto step = blocks.first(std::min(blocks.size(), kChunkRemovals));
    blocks = blocks.subspan(step.size());
    const MutexLock lock(mutex_);
    if (!position) position = position_.load(std::memory_order_relaxed);
    write(logs_[cache], *position, step);
    // Only the end of the call moves the position: until then, a caller's position covers all its
    // blocks.
    if (blocks.empty()) advance_beyond(*position);
  }
}

void RemovalJournal::write(Log& log, std::uint64_t position,
                           std::span<const keys::BlockKey> blocks) {
  for (const keys::BlockKey block : blocks) {
    RemovalChunk& chunk = chunk_for(log, position);
    chunk.later[chunk.size] = static_cast<std::uint32_t>(position - chunk.first);
    chunk.blocks[chunk.size] = block;
    ++chunk.size;
  }
}

RemovalJournal::RemovalChunk& RemovalJournal::chunk_for(Log& log, std::uint64_t position) {
  if (!log.chunks.empty()) {
    RemovalChunk& last = *log.chunks.back();
    // Positions of a chunk are 32-bit distances from its first one.
    const bool is_near = position >= last.first &&
                         position - last.first <= std::numeric_limits<std::uint32_t>::max();
    if (last.size < kChunkRemovals && is_near) return last;
  }
  auto chunk = take_chunk(log);
  chunk->first = position;
  chunk->size = 0;
  log.chunks.push_back(std::move(chunk));
  return *log.chunks.back();
}

std::unique_ptr<RemovalJournal::RemovalChunk> RemovalJournal::take_chunk(Log& log) {
  if (log.chunks.size() >= limits_.chunks_per_engine_max) return give_up_oldest(log);
  if (!free_.empty()) {
    auto chunk = std::move(free_.back());
    free_.pop_back();
    return chunk;
  }
  if (chunks_made_ < limits_.chunks_max) {
    ++chunks_made_;
    return std::make_unique<RemovalChunk>();
  }
  // All chunks are in use, so some rank has one. The walk over perhaps a thousand ranks runs once
  // per chunk.
  const auto most = std::max_element(logs_.begin(), logs_.end(), [](const auto& a, const auto& b) {
    return a.second.chunks.size() < b.second.chunks.size();
  });
  return give_up_oldest(most->second);
}

std::unique_ptr<RemovalJournal::RemovalChunk> RemovalJournal::give_up_oldest(Log& log) const {
  auto oldest = std::move(log.chunks.front());
  log.chunks.pop_front();
  ++log.given_up;
  // The same call may have removals in the next chunk too.
  log.complete_from = oldest->first + oldest->later[oldest->size - 1] + 1;
  return oldest;
}

void RemovalJournal::dropped(CacheId cache) {
  const MutexLock lock(mutex_);
  const std::uint64_t position = position_.load(std::memory_order_relaxed);
  Log& log = logs_[cache];
  log.given_up += log.chunks.size();
  // The drop explains all earlier claims, so single removals before it are not needed.
  std::move(log.chunks.begin(), log.chunks.end(), std::back_inserter(free_));
  log.chunks.clear();
  log.dropped_before = log.complete_from = position + 1;
  advance_beyond(position);
  forget_idle();
}

void RemovalJournal::forget_idle() {
  if (logs_.size() <= limits_.idle_engines_max) return;
  std::erase_if(logs_, [](const auto& entry) { return entry.second.chunks.empty(); });
  idle_forgotten_before_ = position_.load(std::memory_order_relaxed);
}

// Looks at the next chunk. Returns true if there is more to look at.
bool RemovalJournal::look_at_next(Search& search) const {
  const MutexLock lock(mutex_);
  const auto entry = logs_.find(search.cache);
  if (entry == logs_.end()) {
    search.incomplete = search.position < idle_forgotten_before_;
    return false;
  }
  const Log& log = entry->second;
  search.withdrawn = search.position < log.dropped_before;
  search.incomplete = search.position < log.complete_from;
  if (search.withdrawn) return false;
  // Chunks that were not looked at may be dropped between two steps.
  std::uint64_t at = std::max(search.next_chunk, log.given_up) - log.given_up;
  const auto is_before = [&](const RemovalChunk& chunk) {
    return chunk.first + chunk.later[chunk.size - 1] < search.position;
  };
  while (at < log.chunks.size() && is_before(*log.chunks[at])) ++at;
  if (at >= log.chunks.size()) return false;
  const RemovalChunk& chunk = *log.chunks[at];
  for (std::size_t i = 0; i < chunk.size && !search.withdrawn; ++i) {
    search.withdrawn =
        chunk.first + chunk.later[i] >= search.position && search.claimed.contains(chunk.blocks[i]);
  }
  search.next_chunk = log.given_up + at + 1;
  return !search.withdrawn && at + 1 < log.chunks.size();
}

std::optional<bool> RemovalJournal::withdrawn_since(std::uint64_t position, CacheId cache,
                                                    std::span<const keys::BlockKey> blocks) const {
  Search search{.position = position, .cache = cache, .claimed = BlockSet(blocks)};
  while (look_at_next(search)) {
  }
  if (search.withdrawn) return true;
  if (search.incomplete) return std::nullopt;
  return false;
}

std::size_t RemovalJournal::bytes() const {
  const MutexLock lock(mutex_);
  return chunks_made_ * sizeof(RemovalChunk);
}

}  // namespace sightline::index
