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

// How many entries of the table are swept in one hold of the lock, for about 0.1 ms.
constexpr std::size_t kSweepBlocks = 1'024;
// How many blocks are looked up one by one in one hold of the lock, for about 0.1 ms.
constexpr std::size_t kStepBlocks = 512;
// How many entries of the table are swept for each stored block, and for each step of a store.
// During a walk of the whole table, at most half its size is stored. So repeated clears do not
// accumulate garbage.
constexpr std::size_t kSweepPerStored = 2;
constexpr std::size_t kSweepPerStore = 64;

// A list of holders whose capacity is so many times its size is made smaller.
constexpr std::size_t kSparseFactor = 4;

constexpr std::uint32_t bit_of(Tier tier) { return 1U << static_cast<unsigned>(tier); }

// A cache whose run of held blocks continues, and the slowest tier that the run needed.
struct Walker {
  CacheOverlap overlap;
  std::uint32_t life = 0;
  Tier slowest = Tier::Gpu;
};

// If there is no memory for the smaller list, it stays as it is.
template <class List>
void give_room_back(List& list) {
  if (list.capacity() >= kSparseFactor * list.size()) list.shrink_to_fit();
}

// Adds `blocks` further blocks, all held on these tiers, to the run of the slowest tier so far.
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

// Most neighbours in a prompt have the same list: the same caches on the same tiers. match()
// handles them together. So a prefix that a thousand caches share costs a comparison for each
// block, not a step for each cache.
Overlaps ExactIndex::match(std::span<const keys::BlockKey> prompt) const {
  Overlaps overlaps;
  std::vector<Walker> walkers;
  const SharedLock lock(mutex_);
  const Holders* run = nullptr;  // list of holders of the last blocks
  std::uint32_t run_blocks = 0;
  const auto end_run = [&] {
    if (run == nullptr) return;
    // Both lists are ordered by cache.
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
        // The holder may be of a dropped life, which is not swept yet.
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
    // Releases the lock after each step. A long operation must not delay look-ups and other caches.
    const auto step = blocks.first(std::min(blocks.size(), kStepBlocks));
    const UniqueLock lock(mutex_);
    blocks = blocks.subspan(visit(step));
  }
}

template <class Visitor>
std::size_t ExactIndex::until_rehashed(std::span<const keys::BlockKey> blocks, Visitor visit) {
  std::size_t count = 0;
  while (count < blocks.size() && !table_.take_has_rehashed()) visit(blocks[count++]);
  return count;
}

std::uint32_t ExactIndex::begin_life(CacheId cache) {
  const UniqueLock lock(mutex_);
  const auto [life, is_new] = lives_.try_emplace(cache, next_life_);
  if (is_new) ++next_life_;
  return life->second;
}

void ExactIndex::store(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks) {
  const auto number = begin_life(cache);
  in_steps(blocks, [&](std::span<const keys::BlockKey> step) SL_REQUIRES(mutex_) {
    // Another thread dropped the cache between two steps.
    if (life_of(cache) != number) return step.size();
    return store_some({.cache = cache, .life = number}, tier, step);
  });
}

std::size_t ExactIndex::store_some(const Holder& self, Tier tier,
                                   std::span<const keys::BlockKey> blocks) {
  // Pays for the stored blocks with a part of the running walk. See kSweepPerStored.
  Contents& contents = contents_[self.cache];
  sweep(kSweepPerStore + kSweepPerStored * blocks.size());
  std::size_t count = 0;
  may_claim_ = true;
  bool may_make_room = true;  // one search in a step
  while (count < blocks.size() && !table_.take_has_rehashed()) {
    const bool lacks_room = is_full() && needs_room(self, blocks[count]);
    if (lacks_room && sweep(kSweepBlocks)) break;  // the next step may have room
    const bool is_still_full = lacks_room && is_full();
    if (is_still_full && std::exchange(may_make_room, false) && make_room_for(self.cache)) break;
    store_one(self, tier, contents, blocks[count++]);
  }
  return count;
}

void ExactIndex::store_one(const Holder& self, Tier tier, Contents& contents,
                           keys::BlockKey block) {
  auto entry = table_.find(block);
  const bool is_held_to_bound =
      contents.gave_way && beyond_bound(self.cache, contents, {.tier = tier, .blocks = 1}) > 0;
  if (is_held_to_bound || (!entry && is_full())) return refuse(contents);
  if (!entry) entry = table_.insert(block);
  Holders& holders = entry.value();
  auto holder = std::lower_bound(holders.begin(), holders.end(), self, comes_before);
  if (holder == holders.end() || comes_before(self, *holder)) {
    if (!claim_memory()) return refuse(contents);  // the new holder of a known key found no memory
    holder = holders.insert(holder, self);
    ++holders_;
  }
  if ((holder->tiers & bit_of(tier)) == 0) contents.digest.of(tier).add(block);
  holder->tiers |= bit_of(tier);
}

void ExactIndex::remove(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks) {
  in_steps(blocks, [&](std::span<const keys::BlockKey> step) SL_REQUIRES(mutex_) {
    const Holder self{.cache = cache, .life = life_of(cache)};
    const auto contents = contents_.find(cache);
    // Another thread dropped the cache: nothing is left to remove.
    if (self.life == kNoLife || contents == contents_.end()) return step.size();
    return until_rehashed(step, [&](keys::BlockKey block) SL_REQUIRES(mutex_) {
      remove_one(self, tier, contents->second, block);
    });
  });
}

void ExactIndex::remove_one(const Holder& self, Tier tier, Contents& contents,
                            keys::BlockKey block) {
  const auto held = find_held(self, block);
  if (!held || (held->holder->tiers & bit_of(tier)) == 0) return;
  contents.digest.of(tier).remove(block);
  held->holder->tiers &= ~bit_of(tier);
  if (held->holder->tiers == 0) erase(*held);
}

std::optional<ExactIndex::HolderEntry> ExactIndex::find_held(const Holder& wanted,
                                                             keys::BlockKey block) {
  const auto entry = table_.find(block);
  if (!entry) return std::nullopt;
  Holders& holders = entry.value();
  const auto holder = std::lower_bound(holders.begin(), holders.end(), wanted, comes_before);
  if (holder == holders.end() || comes_before(wanted, *holder)) return std::nullopt;
  return HolderEntry{entry, holder};
}

void ExactIndex::erase(const HolderEntry& held) {
  Holders& holders = held.entry.value();
  holders.erase(held.holder);
  --holders_;
  if (holders.empty()) {
    table_.erase(held.entry);
  } else {
    give_room_back(holders);
  }
  give_memory_back();
}

std::uint32_t ExactIndex::end_life(CacheId cache) {
  const auto life = lives_.extract(cache);
  // Without blocks, no holder is in the table, and a walk would be useless.
  const auto contents = contents_.extract(cache);
  const bool is_empty = !contents || contents.mapped().digest == operations::CacheDigest{};
  return !life || is_empty ? kNoLife : life.mapped();
}

void ExactIndex::drop(CacheId cache) {
  // Hides the blocks at first, then frees their memory in steps.
  clear_later(cache);
  while (reclaim_some()) {
  }
}

void ExactIndex::drop_known(CacheId cache, std::span<const keys::BlockKey> blocks) {
  Holder gone{.cache = cache};
  {
    const UniqueLock lock(mutex_);
    gone.life = end_life(cache);
  }
  if (gone.life == kNoLife) return;
  in_steps(blocks, [&](std::span<const keys::BlockKey> step) SL_REQUIRES(mutex_) {
    return until_rehashed(step, [&](keys::BlockKey block) SL_REQUIRES(mutex_) {
      if (const auto held = find_held(gone, block)) erase(*held);
    });
  });
}

void ExactIndex::clear_later(CacheId cache) {
  const UniqueLock lock(mutex_);
  const auto life = end_life(cache);
  if (life != kNoLife) cleared_.push_back(life);
}

bool ExactIndex::reclaim_some() {
  const UniqueLock lock(mutex_);
  return sweep(kSweepBlocks);
}

// Holders of an ended life do not count. They are erased in steps, so no thread waits for them.
bool ExactIndex::sweep(std::size_t entries_max) {
  if (swept_.empty()) {
    if (cleared_.empty()) return false;
    swept_.swap(cleared_);  // in the order of the clears
    std::sort(swept_.begin(), swept_.end());
    swept_to_ = {};
  }
  // All visits end while the lock is held.
  const auto visit = [table = &table_, swept = &swept_, all = &holders_](
                         Table::TablePart& part, Table::TablePart::iterator entry) {
    Holders& holders = entry->second;
    *all -= std::erase_if(holders, [swept](const Holder& holder) {
      return std::binary_search(swept->begin(), swept->end(), holder.life);
    });
    if (holders.empty()) return table->erase_visited(part, entry);
    give_room_back(holders);
    return std::next(entry);
  };
  Table::walk(table_, swept_to_, entries_max, visit);
  give_memory_back();
  if (swept_to_.is_end()) swept_.clear();
  return !swept_.empty() || !cleared_.empty();
}

std::uint64_t ExactIndex::blocks(CacheId cache) const { return digest(cache).of(Tier::Gpu).count; }

operations::CacheDigest ExactIndex::digest(CacheId cache) const {
  const SharedLock lock(mutex_);
  const auto contents = contents_.find(cache);
  return contents == contents_.end() ? operations::CacheDigest{} : contents->second.digest;
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
  const auto contents = contents_.find(cache);
  return contents == contents_.end() ? 0 : contents->second.refused;
}

std::vector<keys::BlockKey> ExactIndex::held(CacheId cache, Tier tier) const {
  std::vector<keys::BlockKey> keys;
  std::uint32_t life = kNoLife;
  const auto visit = [&](const Table::TablePart& /*part*/, Table::TablePart::const_iterator entry) {
    const Holders& holders = entry->second;
    const bool holds = std::any_of(holders.begin(), holders.end(), [&](const Holder& holder) {
      return holder.life == life && (holder.tiers & bit_of(tier)) != 0;
    });
    if (holds) keys.push_back(entry->first);
    return std::next(entry);
  };
  for (Table::WalkPosition place; !place.is_end();) {
    const SharedLock lock(mutex_);
    // Reads the life in each step, because another thread may drop the cache between two steps.
    life = life_of(cache);
    if (life != kNoLife) Table::walk(table_, place, kSweepBlocks, visit);
    if (life == kNoLife) break;
  }
  std::sort(keys.begin(), keys.end());
  // A part that grew meanwhile was walked twice.
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace sightline::index
