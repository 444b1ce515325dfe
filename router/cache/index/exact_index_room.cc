// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// The room in the index, and which cache gives way when it is full.
#include <algorithm>
#include <utility>

#include "router/cache/index/exact_index.h"

namespace sightline::index {

namespace {

// Memory of a key in the table with its vector, of each of its holders, and of each bucket of the
// table. These values are measured. A key has one to two buckets, unless many keys were erased.
constexpr std::size_t kKeyBytes = 64;
constexpr std::size_t kHolderBytes = 16;
constexpr std::size_t kBucketBytes = sizeof(void*);
constexpr std::size_t kBlockBytes = kKeyBytes + kHolderBytes + 2 * kBucketBytes;
constexpr std::size_t kMemoryStepBytes = std::size_t{1} << 20U;
// More than one step. Otherwise stores and removals in turns would claim and return a step each
// time.
constexpr std::size_t kUnusedBytesMax = kMemoryStepBytes + kMemoryStepBytes / 2;

// A cache gives way when it holds its bound and an eighth more. The slack is there because the
// router asks engines for their size some seconds apart.
constexpr std::uint64_t kBoundSlackDivisor = 8;
// A sixteenth of the index must be free before refused blocks are requested again. Otherwise the
// index would soon be full again.
constexpr std::size_t kFreeDivisor = 16;
// If memory is the limit, room for so many blocks is enough.
constexpr std::size_t kFreeBlocksMin = 65'536;

// Returns the number of blocks on all tiers.
std::uint64_t blocks_of(const operations::CacheDigest& digest) {
  std::uint64_t blocks = 0;
  for (const auto& tier : digest.tiers) blocks += tier.count;
  return blocks;
}

}  // namespace

// Called only if there is no room for a new key. A known key may still need memory for a new
// holder.
bool ExactIndex::needs_room(const Holder& self, keys::BlockKey block) {
  if (!table_.find(block)) return true;
  return !claim_memory() && !find_held(self, block);
}

std::uint64_t ExactIndex::beyond_bound(CacheId cache, const Contents& contents,
                                       const More& more) const {
  const auto known = bounds_.find(cache);
  const std::uint64_t share = capacity() / std::max<std::size_t>(contents_.size(), 1);
  const std::uint64_t on_gpu = contents.digest.of(Tier::Gpu).count;
  const std::uint64_t elsewhere = blocks_of(contents.digest) - on_gpu;
  const auto beyond = [](std::uint64_t held, std::uint64_t bound) {
    return held - std::min(held, bound);
  };
  const bool is_on_gpu = more.tier == Tier::Gpu;
  return beyond(on_gpu + (is_on_gpu ? more.blocks : 0),
                known != bounds_.end() ? known->second : share) +
         beyond(elsewhere + (is_on_gpu ? 0 : more.blocks), share);
}

bool ExactIndex::make_room_for(CacheId cache) {
  if (beyond_bound(cache, contents_[cache], {}) > 0) return false;
  std::optional<CacheId> farthest;
  std::uint64_t most = 0;
  for (const auto& [other, contents] : contents_) {
    const std::uint64_t beyond = beyond_bound(other, contents, {});
    const std::uint64_t within = blocks_of(contents.digest) - beyond;
    // The smaller id breaks a tie, because the order in the hash table is arbitrary.
    const bool is_farther = beyond > most || (beyond == most && farthest && other < *farthest);
    if (!is_farther || beyond <= within / kBoundSlackDivisor) continue;
    farthest = other;
    most = beyond;
  }
  if (!farthest) return false;
  const std::uint64_t lost = blocks_of(contents_.at(*farthest).digest);
  cleared_.push_back(end_life(*farthest));
  contents_[*farthest] = {.digest = {}, .refused = lost, .gave_way = true};
  refused_ += lost;
  const bool is_news = std::find(gave_way_.begin(), gave_way_.end(), *farthest) == gave_way_.end();
  if (is_news) gave_way_.push_back(*farthest);
  return true;
}

void ExactIndex::refuse(Contents& contents) {
  ++refused_;
  ++contents.refused;
}

std::size_t ExactIndex::memory_bytes() const {
  return table_.size() * kKeyBytes + holders_ * kHolderBytes + table_.buckets() * kBucketBytes;
}

std::size_t ExactIndex::capacity() const {
  const std::size_t bytes = memory_.bytes() - std::min(memory_.bytes(), memory_bytes());
  const bool has_memory = bytes >= kBlockBytes || memory_.room() >= kMemoryStepBytes;
  return has_memory ? blocks_max_ : table_.size();
}

bool ExactIndex::claim_memory() {
  const std::size_t needed = memory_bytes() + kBlockBytes;
  if (needed <= memory_.bytes()) return true;
  may_claim_ = may_claim_ && memory_.add(kMemoryStepBytes);
  return may_claim_;
}

void ExactIndex::give_memory_back() {
  while (memory_.bytes() >= memory_bytes() + kUnusedBytesMax) memory_.remove(kMemoryStepBytes);
}

void ExactIndex::set_bounds(const std::vector<Bound>& bounds) {
  std::unordered_map<CacheId, std::uint64_t> by_cache;
  for (const Bound& bound : bounds) by_cache[bound.cache] = bound.engine_blocks;
  const UniqueLock lock(mutex_);
  bounds_.swap(by_cache);
}

std::vector<CacheId> ExactIndex::take_gave_way() {
  const UniqueLock lock(mutex_);
  return std::exchange(gave_way_, {});
}

CacheLimits ExactIndex::limits(CacheId cache) const {
  CacheLimits limits;
  const SharedLock lock(mutex_);
  const auto bound = bounds_.find(cache);
  if (bound != bounds_.end()) limits.engine_blocks = bound->second;
  const auto contents = contents_.find(cache);
  if (contents == contents_.end()) return limits;
  limits.refused = contents->second.refused;
  limits.gave_way = contents->second.gave_way;
  return limits;
}

bool ExactIndex::has_room() const {
  const SharedLock lock(mutex_);
  const std::size_t least = std::max<std::size_t>(blocks_max_ / kFreeDivisor, 1);
  const std::size_t bytes = memory_.bytes() - std::min(memory_.bytes(), memory_bytes());
  return table_.size() + least <= blocks_max_ &&
         memory_.room() + bytes >= std::min(least, kFreeBlocksMin) * kBlockBytes;
}

}  // namespace sightline::index
