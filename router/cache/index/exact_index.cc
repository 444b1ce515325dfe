// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/index/exact_index.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <type_traits>
#include <utility>

namespace sightline::index {

namespace {

// Blocks of the table that are swept under the lock at once, for about 0.1 ms.
constexpr std::size_t kSweepBlocks = 1'024;
// Likewise, looked up one by one.
constexpr std::size_t kStepBlocks = 512;

constexpr std::uint32_t bit_of(Tier tier) { return 1U << static_cast<unsigned>(tier); }

// An engine whose run of held blocks still goes on, and the slowest tier it has needed so far.
struct Walker {
  CacheOverlap overlap;
  std::uint32_t life = 0;
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
      const Holder wanted{.engine = walker.overlap.engine, .life = walker.life};
      while (holder != run->end() && comes_before(*holder, wanted)) ++holder;
      const bool holds = holder != run->end() && !comes_before(wanted, *holder);
      if (holds) {
        advance(walker, holder->tiers, run_blocks);
      } else {
        overlaps.engines.push_back(walker.overlap);
      }
      return !holds;
    });
  };
  for (const keys::BlockKey block : prompt) {
    const Holders* const found = table_.find(block);
    if (found == nullptr) break;
    const Holders& holders = *found;
    if (run == nullptr) {
      for (const auto& holder : holders) {
        if (life_of(holder.engine) != holder.life) continue;
        walkers.push_back({.overlap = {.engine = holder.engine}, .life = holder.life});
      }
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

bool ExactIndex::comes_before(const Holder& a, const Holder& b) {
  return a.engine != b.engine ? a.engine < b.engine : a.life < b.life;
}

std::uint32_t ExactIndex::life_of(CacheId engine) const {
  const auto life = lives_.find(engine);
  return life == lives_.end() ? kNoLife : life->second;
}

bool ExactIndex::same_bytes(const Holders& a, const Holders& b) {
  static_assert(std::has_unique_object_representations_v<Holder>);
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Holder)) == 0;
}

template <class Visitor>
void ExactIndex::in_steps(std::span<const keys::BlockKey> blocks, Visitor visit) {
  while (!blocks.empty()) {
    const auto step = blocks.first(std::min(blocks.size(), kStepBlocks));
    const std::unique_lock lock(mutex_);
    blocks = blocks.subspan(visit(step));
  }
}

std::uint32_t ExactIndex::begin_life(CacheId engine) {
  const std::unique_lock lock(mutex_);
  const auto life = lives_.try_emplace(engine, next_life_);
  if (life.second) ++next_life_;
  return life.first->second;
}

void ExactIndex::store(CacheId engine, Tier tier, std::span<const keys::BlockKey> blocks) {
  const Holder self{.engine = engine, .life = begin_life(engine)};
  in_steps(blocks, [&](std::span<const keys::BlockKey> step) {
    if (life_of(engine) != self.life) return step.size();  // dropped between two steps
    std::size_t count = 0;
    while (count < step.size() && !table_.take_has_grown()) store_one(self, tier, step[count++]);
    return count;
  });
}

void ExactIndex::store_one(const Holder& self, Tier tier, keys::BlockKey block) {
  auto entry = table_.find(block);
  if (!entry) {
    if (table_.size() >= blocks_max_) {
      ++refused_;
      ++refused_of_[self.engine];
      return;
    }
    entry = table_.insert(block);
  }
  Holders& holders = entry.value();
  auto holder = std::lower_bound(holders.begin(), holders.end(), self, comes_before);
  if (holder == holders.end() || comes_before(self, *holder)) {
    holder = holders.insert(holder, self);
  }
  if (tier == Tier::Gpu && (holder->tiers & bit_of(tier)) == 0) ++gpu_blocks_[self.engine];
  holder->tiers |= bit_of(tier);
}

void ExactIndex::remove(CacheId engine, Tier tier, std::span<const keys::BlockKey> blocks) {
  in_steps(blocks, [&](std::span<const keys::BlockKey> step) {
    const Holder self{.engine = engine, .life = life_of(engine)};
    for (const auto block : step) remove_one(self, tier, block);
    return step.size();
  });
  if (journal_ != nullptr) journal_->removed(engine, blocks);
}

void ExactIndex::remove_one(const Holder& self, Tier tier, keys::BlockKey block) {
  const auto held = find_held(self, block);
  if (!held || (held->holder->tiers & bit_of(tier)) == 0) return;
  if (tier == Tier::Gpu) --gpu_blocks_[self.engine];
  held->holder->tiers &= ~bit_of(tier);
  if (held->holder->tiers == 0) erase(*held);
}

std::optional<ExactIndex::Held> ExactIndex::find_held(const Holder& wanted, keys::BlockKey block) {
  const auto entry = table_.find(block);
  if (!entry) return std::nullopt;
  Holders& holders = entry.value();
  const auto holder = std::lower_bound(holders.begin(), holders.end(), wanted, comes_before);
  if (holder == holders.end() || comes_before(wanted, *holder)) return std::nullopt;
  return Held{entry, holder};
}

void ExactIndex::erase(const Held& held) {
  Holders& holders = held.entry.value();
  holders.erase(held.holder);
  if (holders.empty()) table_.erase(held.entry);
}

std::uint32_t ExactIndex::end_life(CacheId engine) {
  std::uint32_t life = kNoLife;
  {
    const std::unique_lock lock(mutex_);
    life = life_of(engine);
    lives_.erase(engine);
    gpu_blocks_.erase(engine);
    refused_of_.erase(engine);
  }
  if (life != kNoLife && journal_ != nullptr) journal_->dropped(engine);
  return life;
}

// What is left of a life that has ended says nothing: it goes in steps, and nobody waits for it.
void ExactIndex::drop(CacheId engine) {
  const auto life = end_life(engine);
  if (life != kNoLife) sweep(life);
}

void ExactIndex::drop_known(CacheId engine, std::span<const keys::BlockKey> blocks) {
  const Holder gone{.engine = engine, .life = end_life(engine)};
  if (gone.life == kNoLife) return;
  in_steps(blocks, [&](std::span<const keys::BlockKey> step) {
    for (const auto block : step) {
      if (const auto held = find_held(gone, block)) erase(*held);
    }
    return step.size();
  });
}

void ExactIndex::sweep(std::uint32_t life) {
  const auto visit = [&](Table::Part& part, Table::Part::iterator entry) {
    Holders& holders = entry->second;
    std::erase_if(holders, [life](const Holder& holder) { return holder.life == life; });
    return holders.empty() ? table_.erase({&part, entry}) : std::next(entry);
  };
  for (Table::Place place; !place.is_end();) {
    const std::unique_lock lock(mutex_);
    Table::walk(table_, place, kSweepBlocks, visit);
  }
}

std::uint64_t ExactIndex::blocks(CacheId engine) const {
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

std::uint64_t ExactIndex::refused(CacheId engine) const {
  const std::shared_lock lock(mutex_);
  const auto count = refused_of_.find(engine);
  return count == refused_of_.end() ? 0 : count->second;
}

std::vector<keys::BlockKey> ExactIndex::held(CacheId engine, Tier tier) const {
  std::vector<keys::BlockKey> keys;
  std::uint32_t life = kNoLife;
  const auto visit = [&](const Table::Part& /*part*/, Table::Part::const_iterator entry) {
    const Holders& holders = entry->second;
    const bool holds = std::any_of(holders.begin(), holders.end(), [&](const Holder& holder) {
      return holder.life == life && (holder.tiers & bit_of(tier)) != 0;
    });
    if (holds) keys.push_back(entry->first);
    return std::next(entry);
  };
  for (Table::Place place; !place.is_end();) {
    const std::shared_lock lock(mutex_);
    life = life_of(engine);
    if (life != kNoLife) Table::walk(table_, place, kSweepBlocks, visit);
    if (life == kNoLife) break;
  }
  std::sort(keys.begin(), keys.end());
  // A part that grew meanwhile was walked again.
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace sightline::index
