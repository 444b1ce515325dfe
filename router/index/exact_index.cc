// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/index/exact_index.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

namespace sightline::index {

namespace {

constexpr std::uint8_t bit_of(Tier tier) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(tier));
}

// An engine whose run of held blocks still goes on, and the slowest tier it has needed so far.
struct Walker {
  EngineOverlap overlap;
  Tier slowest = Tier::Gpu;
};

// Counts one more block on the tier it needs; false: not held, the run ends.
bool advance(Walker& walker, std::uint8_t tiers) {
  if (tiers == 0) return false;
  const auto fastest = (tiers & bit_of(Tier::Gpu)) != 0   ? Tier::Gpu
                       : (tiers & bit_of(Tier::Cpu)) != 0 ? Tier::Cpu
                                                          : Tier::Storage;
  walker.slowest = std::max(walker.slowest, fastest);
  switch (walker.slowest) {
    case Tier::Gpu:
      ++walker.overlap.gpu_blocks;
      break;
    case Tier::Cpu:
      ++walker.overlap.cpu_blocks;
      break;
    case Tier::Storage:
      ++walker.overlap.storage_blocks;
      break;
  }
  return true;
}

}  // namespace

Overlaps ExactIndex::match(std::span<const keys::BlockKey> prompt) const {
  Overlaps overlaps;
  std::vector<Walker> walkers;
  const std::shared_lock lock(mutex_);
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    const auto entry = table_.find(prompt[i]);
    if (entry == table_.end()) break;
    const Holders& holders = entry->second;
    if (i == 0) {
      for (const auto& holder : holders) walkers.push_back({.overlap = {.engine = holder.engine}});
    }
    std::erase_if(walkers, [&](Walker& walker) {
      const auto holder = std::find_if(
          holders.begin(), holders.end(),
          [&](const Holder& candidate) { return candidate.engine == walker.overlap.engine; });
      if (holder != holders.end() && advance(walker, holder->tiers)) return false;
      overlaps.engines.push_back(walker.overlap);
      return true;
    });
    if (walkers.empty()) break;
  }
  for (const auto& walker : walkers) overlaps.engines.push_back(walker.overlap);
  std::sort(overlaps.engines.begin(), overlaps.engines.end(),
            [](const auto& a, const auto& b) { return a.engine < b.engine; });
  return overlaps;
}

void ExactIndex::store(EngineId engine, Tier tier, std::span<const keys::BlockKey> blocks) {
  const std::unique_lock lock(mutex_);
  for (const auto block : blocks) {
    auto entry = table_.find(block);
    if (entry == table_.end()) {
      if (table_.size() >= blocks_max_) {
        ++refused_;
        continue;
      }
      entry = table_.emplace(block, Holders{}).first;
    }
    Holders& holders = entry->second;
    auto holder = std::find_if(holders.begin(), holders.end(),
                               [&](const Holder& candidate) { return candidate.engine == engine; });
    if (holder == holders.end()) holder = holders.insert(holders.end(), {.engine = engine});
    if (tier == Tier::Gpu && (holder->tiers & bit_of(tier)) == 0) ++gpu_blocks_[engine];
    holder->tiers |= bit_of(tier);
  }
}

void ExactIndex::remove(EngineId engine, Tier tier, std::span<const keys::BlockKey> blocks) {
  const std::unique_lock lock(mutex_);
  for (const auto block : blocks) {
    const auto entry = table_.find(block);
    if (entry == table_.end()) continue;
    Holders& holders = entry->second;
    const auto holder = std::find_if(holders.begin(), holders.end(), [&](const Holder& candidate) {
      return candidate.engine == engine;
    });
    if (holder == holders.end() || (holder->tiers & bit_of(tier)) == 0) continue;
    if (tier == Tier::Gpu) --gpu_blocks_[engine];
    holder->tiers &= static_cast<std::uint8_t>(~bit_of(tier));
    if (holder->tiers == 0) holders.erase(holder);
    if (holders.empty()) table_.erase(entry);
  }
}

void ExactIndex::drop(EngineId engine) {
  const std::unique_lock lock(mutex_);
  for (auto entry = table_.begin(); entry != table_.end();) {
    Holders& holders = entry->second;
    std::erase_if(holders, [&](const Holder& holder) { return holder.engine == engine; });
    entry = holders.empty() ? table_.erase(entry) : std::next(entry);
  }
  gpu_blocks_.erase(engine);
}

std::uint64_t ExactIndex::blocks(EngineId engine) const {
  const std::shared_lock lock(mutex_);
  const auto count = gpu_blocks_.find(engine);
  return count == gpu_blocks_.end() ? 0 : count->second;
}

std::uint64_t ExactIndex::blocks_total() const {
  const std::shared_lock lock(mutex_);
  return table_.size();
}

std::uint64_t ExactIndex::refused_total() const {
  const std::shared_lock lock(mutex_);
  return refused_;
}

std::vector<keys::BlockKey> ExactIndex::held(EngineId engine, Tier tier) const {
  std::vector<keys::BlockKey> keys;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [key, holders] : table_) {
      const bool holds = std::any_of(holders.begin(), holders.end(), [&](const Holder& holder) {
        return holder.engine == engine && (holder.tiers & bit_of(tier)) != 0;
      });
      if (holds) keys.push_back(key);
    }
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace sightline::index
