// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/index/removal_journal.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace sightline::index {

namespace {

// Removals that are looked at under the lock at once, for some 10 us.
constexpr std::uint64_t kStepRemovals = 4'096;

// Blocks to be found among very many others: most are told apart by one bit.
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

  // Keys are as good as random already.
  [[nodiscard]] std::size_t place_of(keys::BlockKey block) const {
    return block.value & (is_marked_.size() - 1);
  }

  std::vector<keys::BlockKey> sorted_;
  std::vector<bool> is_marked_;
};

}  // namespace

RemovalJournal::RemovalJournal(std::size_t removals_max) : ring_(removals_max) {
  SL_CHECK(removals_max > 0);
}

void RemovalJournal::write(const Removal& removal) {
  const std::uint64_t at = position_.load(std::memory_order_relaxed);
  ring_[at % ring_.size()] = removal;
  position_.store(at + 1, std::memory_order_release);
}

void RemovalJournal::removed(EngineId engine, std::span<const keys::BlockKey> blocks) {
  const std::lock_guard lock(mutex_);
  for (const keys::BlockKey block : blocks) write({engine, block});
}

void RemovalJournal::dropped(EngineId engine) {
  const std::lock_guard lock(mutex_);
  write({engine, std::nullopt});
}

std::optional<bool> RemovalJournal::withdrawn_since(std::uint64_t position, EngineId engine,
                                                    std::span<const keys::BlockKey> blocks) const {
  const std::uint64_t end = this->position();
  const BlockSet claimed(blocks);
  for (std::uint64_t at = position; at < end;) {
    const std::uint64_t step_end = std::min(end, at + kStepRemovals);
    const std::lock_guard lock(mutex_);
    // What was not looked at yet may be overwritten between two steps.
    if (position_.load(std::memory_order_relaxed) - at > ring_.size()) return std::nullopt;
    for (; at < step_end; ++at) {
      const Removal& removal = ring_[at % ring_.size()];
      if (removal.engine != engine) continue;
      if (!removal.block || claimed.contains(*removal.block)) return true;
    }
  }
  return false;
}

}  // namespace sightline::index
