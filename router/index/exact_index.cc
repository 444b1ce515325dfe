// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/index/exact_index.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <type_traits>
#include <utility>

namespace sightline::index {

namespace {

constexpr std::uint32_t bit_of(Tier tier) { return 1U << static_cast<unsigned>(tier); }

// An engine whose run of held blocks still goes on, and the slowest tier it has needed so far.
struct Walker {
  EngineOverlap overlap;
  Tier slowest = Tier::Gpu;
};

// Counts further blocks, all held on these tiers, on the tier they need.
void advance(Walker& walker, std::uint32_t tiers, std::uint32_t blocks) {
  const auto fastest = (tiers & bit_of(Tier::Gpu)) != 0   ? Tier::Gpu
                       : (tiers & bit_of(Tier::Cpu)) != 0 ? Tier::Cpu
                                                          : Tier::Storage;
  walker.slowest = std::max(walker.slowest, fastest);
  switch (walker.slowest) {
    case Tier::Gpu:
      walker.overlap.gpu_blocks += blocks;
      break;
    case Tier::Cpu:
      walker.overlap.cpu_blocks += blocks;
      break;
    case Tier::Storage:
      walker.overlap.storage_blocks += blocks;
      break;
  }
}

}  // namespace

// The engines that hold a block, and on which tiers: the same list for most neighbours in a prompt.
// Those are taken together, so that a prefix which a thousand engines share costs a comparison for
// each block instead of a step for each engine.
Overlaps ExactIndex::match(std::span<const keys::BlockKey> prompt) const {
  Overlaps overlaps;
  std::vector<Walker> walkers;
  const std::shared_lock lock(mutex_);
  const Holders* run = nullptr;  // of the last blocks
  std::uint32_t run_blocks = 0;
  const auto end_run = [&] {
    if (run == nullptr) return;
    // Both are ordered by engine.
    auto holder = run->begin();
    std::erase_if(walkers, [&](Walker& walker) {
      while (holder != run->end() && holder->engine < walker.overlap.engine) ++holder;
      const bool holds = holder != run->end() && holder->engine == walker.overlap.engine;
      if (holds) {
        advance(walker, holder->tiers, run_blocks);
      } else {
        overlaps.engines.push_back(walker.overlap);
      }
      return !holds;
    });
  };
  for (const keys::BlockKey block : prompt) {
    const auto entry = table_.find(block);
    if (entry == table_.end()) break;
    const Holders& holders = entry->second;
    if (run == nullptr) {
      for (const auto& holder : holders) walkers.push_back({.overlap = {.engine = holder.engine}});
    } else if (same_bytes(*run, holders)) {
      ++run_blocks;
      continue;
    }
    end_run();
    if (walkers.empty()) break;
    run = &holders;
    run_blocks = 1;
  }
  end_run();
  for (const auto& walker : walkers) overlaps.engines.push_back(walker.overlap);
  std::sort(overlaps.engines.begin(), overlaps.engines.end(),
            [](const auto& a, const auto& b) { return a.engine < b.engine; });
  return overlaps;
}

// Where the engine stands in a block's list, or would.
ExactIndex::Holders::iterator ExactIndex::place_of(EngineId engine, Holders& holders) {
  return std::lower_bound(
      holders.begin(), holders.end(), engine,
      [](const Holder& holder, EngineId wanted) { return holder.engine < wanted; });
}

bool ExactIndex::same_bytes(const Holders& a, const Holders& b) {
  static_assert(std::has_unique_object_representations_v<Holder>);
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Holder)) == 0;
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
    auto holder = place_of(engine, holders);
    if (holder == holders.end() || holder->engine != engine) {
      holder = holders.insert(holder, {.engine = engine});
    }
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
    const auto holder = place_of(engine, holders);
    if (holder == holders.end() || holder->engine != engine) continue;
    if ((holder->tiers & bit_of(tier)) == 0) continue;
    if (tier == Tier::Gpu) --gpu_blocks_[engine];
    holder->tiers &= ~bit_of(tier);
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
