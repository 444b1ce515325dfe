// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/index/exact_index.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

namespace sightline::index {

namespace {

// Blocks of the table that are swept under the lock at once, for about 0.1 ms.
constexpr std::size_t kSweepBlocks = 1'024;
// Likewise, looked up one by one.
constexpr std::size_t kStepBlocks = 512;

constexpr std::uint32_t bit_of(Tier tier) { return 1U << static_cast<unsigned>(tier); }

// A cache whose run of held blocks still goes on, and the slowest tier it has needed so far.
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

// The caches that hold a block, and on which tiers: the same list for most neighbours in a prompt.
// Those are taken together, so that a prefix which a thousand caches share costs a comparison for
// each block instead of a step for each cache.
Overlaps ExactIndex::match(std::span<const keys::BlockKey> prompt) const {
  Overlaps overlaps;
  std::vector<Walker> walkers;
  const SharedLock lock(mutex_);
  const Holders* run = nullptr;  // of the last blocks
  std::uint32_t run_blocks = 0;
  const auto end_run = [&] {
    if (run == nullptr) return;
    // Both are ordered by cache.
    auto holder = run->begin();
    std::erase_if(walkers, [&](Walker& walker) {
      const Holder wanted{.cache = walker.overlap.cache, .life = walker.life};
      while (holder != run->end() && comes_before(*holder, wanted)) ++holder;
      const bool holds = holder != run->end() && !comes_before(wanted, *holder);
      if (holds) {
        advance(walker, holder->tiers, run_blocks);
      } else {
        overlaps.caches.push_back(walker.overlap);
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
        if (life_of(holder.cache) != holder.life) continue;
        walkers.push_back({.overlap = {.cache = holder.cache}, .life = holder.life});
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
  for (const auto& walker : walkers) overlaps.caches.push_back(walker.overlap);
  std::sort(overlaps.caches.begin(), overlaps.caches.end(),
            [](const auto& a, const auto& b) { return a.cache < b.cache; });
  return overlaps;
}

void ExactIndex::apply(CacheId cache, const operations::Operation& operation) {
  if (const auto* stored = std::get_if<operations::Store>(&operation)) {
    store(cache, stored->tier, stored->keys);
  } else if (const auto* removed = std::get_if<operations::Remove>(&operation)) {
    remove(cache, removed->tier, removed->keys);
  } else if (const auto& held = std::get<operations::Clear>(operation).held) {
    drop_known(cache, *held);
  } else {
    drop(cache);
  }
}

bool ExactIndex::comes_before(const Holder& a, const Holder& b) {
  return a.cache != b.cache ? a.cache < b.cache : a.life < b.life;
}

std::uint32_t ExactIndex::life_of(CacheId cache) const {
  const auto life = lives_.find(cache);
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
    const UniqueLock lock(mutex_);
    blocks = blocks.subspan(visit(step));
  }
}

std::uint32_t ExactIndex::begin_life(CacheId cache) {
  const UniqueLock lock(mutex_);
  const auto life = lives_.try_emplace(cache, next_life_);
  if (life.second) ++next_life_;
  return life.first->second;
}

void ExactIndex::store(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks) {
  const Holder self{.cache = cache, .life = begin_life(cache)};
  in_steps(blocks, [&](std::span<const keys::BlockKey> step) SL_REQUIRES(mutex_) {
    if (life_of(cache) != self.life) return step.size();  // dropped between two steps
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
      ++refused_of_[self.cache];
      return;
    }
    entry = table_.insert(block);
  }
  Holders& holders = entry.value();
  auto holder = std::lower_bound(holders.begin(), holders.end(), self, comes_before);
  if (holder == holders.end() || comes_before(self, *holder)) {
    holder = holders.insert(holder, self);
  }
  if (tier == Tier::Gpu && (holder->tiers & bit_of(tier)) == 0) ++gpu_blocks_[self.cache];
  holder->tiers |= bit_of(tier);
}

void ExactIndex::remove(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks) {
  in_steps(blocks, [&](std::span<const keys::BlockKey> step) SL_REQUIRES(mutex_) {
    const Holder self{.cache = cache, .life = life_of(cache)};
    for (const auto block : step) remove_one(self, tier, block);
    return step.size();
  });
}

void ExactIndex::remove_one(const Holder& self, Tier tier, keys::BlockKey block) {
  const auto held = find_held(self, block);
  if (!held || (held->holder->tiers & bit_of(tier)) == 0) return;
  if (tier == Tier::Gpu) --gpu_blocks_[self.cache];
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

std::uint32_t ExactIndex::end_life(CacheId cache) {
  std::uint32_t life = kNoLife;
  {
    const UniqueLock lock(mutex_);
    life = life_of(cache);
    lives_.erase(cache);
    gpu_blocks_.erase(cache);
    refused_of_.erase(cache);
  }
  return life;
}

// What is left of a life that has ended says nothing: it goes in steps, and nobody waits for it.
void ExactIndex::drop(CacheId cache) {
  const auto life = end_life(cache);
  if (life != kNoLife) sweep(life);
}

void ExactIndex::drop_known(CacheId cache, std::span<const keys::BlockKey> blocks) {
  const Holder gone{.cache = cache, .life = end_life(cache)};
  if (gone.life == kNoLife) return;
  in_steps(blocks, [&](std::span<const keys::BlockKey> step) SL_REQUIRES(mutex_) {
    for (const auto block : step) {
      if (const auto held = find_held(gone, block)) erase(*held);
    }
    return step.size();
  });
}

void ExactIndex::sweep(std::uint32_t life) {
  for (Table::Place place; !place.is_end();) {
    const UniqueLock lock(mutex_);
    // Visits end before the lock does.
    const auto visit = [life, table = &table_](Table::Part& part, Table::Part::iterator entry) {
      Holders& holders = entry->second;
      std::erase_if(holders, [life](const Holder& holder) { return holder.life == life; });
      return holders.empty() ? table->erase({&part, entry}) : std::next(entry);
    };
    Table::walk(table_, place, kSweepBlocks, visit);
  }
}

std::uint64_t ExactIndex::blocks(CacheId cache) const {
  const SharedLock lock(mutex_);
  const auto count = gpu_blocks_.find(cache);
  return count == gpu_blocks_.end() ? 0 : count->second;
}

std::uint64_t ExactIndex::blocks_total() const {
  const SharedLock lock(mutex_);
  return table_.size();
}

std::uint64_t ExactIndex::refused_total() const {
  const SharedLock lock(mutex_);
  return refused_;
}

std::uint64_t ExactIndex::refused(CacheId cache) const {
  const SharedLock lock(mutex_);
  const auto count = refused_of_.find(cache);
  return count == refused_of_.end() ? 0 : count->second;
}

std::vector<keys::BlockKey> ExactIndex::held(CacheId cache, Tier tier) const {
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
    const SharedLock lock(mutex_);
    life = life_of(cache);
    if (life != kNoLife) Table::walk(table_, place, kSweepBlocks, visit);
    if (life == kNoLife) break;
  }
  std::sort(keys.begin(), keys.end());
  // A part that grew meanwhile was walked again.
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace sightline::index
