// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/index/removal_journal.h"

#include <algorithm>

#include "common/base/check.h"

namespace sightline::index {

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
  std::vector<keys::BlockKey> sorted(blocks.begin(), blocks.end());
  std::sort(sorted.begin(), sorted.end());
  const std::lock_guard lock(mutex_);
  const std::uint64_t end = position_.load(std::memory_order_relaxed);
  if (end - position > ring_.size()) return std::nullopt;
  for (std::uint64_t at = position; at < end; ++at) {
    const Removal& removal = ring_[at % ring_.size()];
    if (removal.engine != engine) continue;
    if (!removal.block || std::binary_search(sorted.begin(), sorted.end(), *removal.block)) {
      return true;
    }
  }
  return false;
}

}  // namespace sightline::index
