// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/writer_first_mutex.h"

#include "router/cache/index/parted_table.h"
#include "router/cache/index/prefix_index.h"

// The blocks that a cache holds between two drops are one life. Lives have numbers, which
// count up through the index.
//
//                 store (the next number)                drop
//    no life ------------------------------> life n --------------> no life
//                                              |   store, remove
//                                              +---> life n
//
//    a holder in the table:   counts while life n is its cache's life
//                             after the drop: does not count, and is swept away in steps
namespace sightline::index {

// The default limit of distinct keys. A full index takes about 1.5 GB.
inline constexpr std::size_t kBlocksMax = 16'000'000;

// The simplest index: a hash table from key to holders. It is exact, so it is also the reference
// for other implementations.
//
// While there is room, a cache may exceed its bound. Its bound comes from set_bounds(), else it is
// an equal share of the index. When the index is full, a cache within its bound may need room. Then
// a cache that exceeds its bound by more than an eighth gives way. It loses all its blocks, and may
// not exceed its bound until it is cleared. If no cache exceeds its bound by so much, the index
// refuses new keys.
//
// A clear hides the cache's blocks immediately. Then it walks the blocks that it names, or else the
// whole table. clear_later() puts the walk off. Until the walk, that memory still counts in
// blocks_total(). A store that finds the table full walks first. No operation keeps other threads
// out for more than a millisecond or two, and this includes growth and held(). Look-ups without
// pause do not keep a writer out.
class ExactIndex : public IndexReader, public IndexWriter, public IndexStatistics {
 public:
  // Charges its approximate memory to `memory`, in steps of 1 MiB. The index is full when the
  // budget has no more. Null: no charge. The budget outlives the index.
  explicit ExactIndex(std::size_t blocks_max = kBlocksMax, ByteBudget* memory = nullptr)
      : blocks_max_(blocks_max), memory_(memory) {}

  [[nodiscard]] Overlaps match(std::span<const keys::BlockKey> prompt) const override;

  void apply(CacheId cache, const operations::Operation& operation) override;
  // Do the same for one kind of operation. A drop() while another thread stores for the cache ends
  // that store.
  void store(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks);
  void remove(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks);
  void drop(CacheId cache);
  // Drops a cache whose blocks are all in `blocks`, perhaps with others.
  void drop_known(CacheId cache, std::span<const keys::BlockKey> blocks);
  void clear_later(CacheId cache) override;
  bool reclaim_some() override;

  // Sets how many blocks engines have on their GPUs. For other tiers the bound is always a share.
  // Replaces all earlier bounds.
  struct Bound {
    CacheId cache;
    std::uint64_t engine_blocks = 0;
  };
  void set_bounds(const std::vector<Bound>& bounds);
  // Returns the caches that gave way since the last call, each once.
  [[nodiscard]] std::vector<CacheId> take_gave_way();

  [[nodiscard]] std::uint64_t blocks(CacheId cache) const override;
  [[nodiscard]] std::uint64_t blocks_total() const override;
  [[nodiscard]] operations::CacheDigest digest(CacheId cache) const override;
  [[nodiscard]] std::uint64_t refused_total() const override;
  [[nodiscard]] std::uint64_t refused(CacheId cache) const override;
  [[nodiscard]] CacheLimits limits(CacheId cache) const override;
  [[nodiscard]] bool has_room() const override;
  [[nodiscard]] std::vector<keys::BlockKey> held(CacheId cache, Tier tier) const override;

 private:
  static constexpr std::uint32_t kNoLife = 0;
  struct Holder {
    CacheId cache;
    std::uint32_t life = kNoLife;
    std::uint32_t tiers = 0;  // bit t: held on tier t. Never 0 in the table
  };
  struct Contents {
    operations::CacheDigest digest;
    std::uint64_t refused = 0;
    bool gave_way = false;
  };
  using Holders = std::vector<Holder>;  // ordered by comes_before()
  using Table = PartedTable<Holders>;

  static bool comes_before(const Holder& a, const Holder& b);
  static bool same_bytes(const Holders& a, const Holders& b);
  [[nodiscard]] std::uint32_t life_of(CacheId cache) const SL_REQUIRES_SHARED(mutex_);
  // Returns the life that the cache has, or begins a new one.
  std::uint32_t begin_life(CacheId cache);
  // Ends the life of a cache: its blocks do not count. Returns the number of this life,
  // whose holders remain in the table. kNoLife if the table has no such holder.
  std::uint32_t end_life(CacheId cache) SL_REQUIRES(mutex_);
  // Visits that many entries and erases holders of cleared lives. Returns true if there is more.
  bool sweep(std::size_t entries_max) SL_REQUIRES(mutex_);
  // Returns true if no room is left for one more key, or one more holder of a key.
  [[nodiscard]] bool is_full() SL_REQUIRES(mutex_) {
    return table_.size() >= blocks_max_ || !claim_memory();
  }
  // Returns the limit of keys, with the present ones. If memory is short, it is the number of
  // present keys.
  [[nodiscard]] std::size_t capacity() const SL_REQUIRES_SHARED(mutex_);
  bool claim_memory() SL_REQUIRES(mutex_);
  void give_memory_back() SL_REQUIRES(mutex_);
  [[nodiscard]] std::size_t memory_bytes() const SL_REQUIRES_SHARED(mutex_);
  [[nodiscard]] bool needs_room(const Holder& self, keys::BlockKey block) SL_REQUIRES(mutex_);
  // Returns by how many blocks the cache exceeds its bound. With `more`: if it had so many more
  // blocks on that tier.
  struct More {
    Tier tier = Tier::Gpu;
    std::uint64_t blocks = 0;
  };
  [[nodiscard]] std::uint64_t beyond_bound(CacheId cache, const Contents& contents,
                                           const More& more) const SL_REQUIRES_SHARED(mutex_);
  // Makes the cache that exceeds its bound most give way to this cache. Returns false if no cache
  // exceeds it enough, or if this cache exceeds its own.
  bool make_room_for(CacheId cache) SL_REQUIRES(mutex_);
  // Visits some blocks at a time under the lock. Other threads get in between. `visit` returns how
  // many of the given blocks it has handled.
  template <class Visitor>
  void in_steps(std::span<const keys::BlockKey> blocks, Visitor visit);
  // Visits blocks one by one, until a part of the table grows or shrinks, which takes a step's
  // time. Returns how many it visited.
  template <class Visitor>
  std::size_t until_rehashed(std::span<const keys::BlockKey> blocks, Visitor visit)
      SL_REQUIRES(mutex_);
  // Stores the first blocks of these and returns how many.
  std::size_t store_some(const Holder& self, Tier tier, std::span<const keys::BlockKey> blocks)
      SL_REQUIRES(mutex_);
  void store_one(const Holder& self, Tier tier, Contents& contents, keys::BlockKey block)
      SL_REQUIRES(mutex_);
  void refuse(Contents& contents) SL_REQUIRES(mutex_);
  void remove_one(const Holder& self, Tier tier, Contents& contents, keys::BlockKey block)
      SL_REQUIRES(mutex_);

  struct HolderEntry {
    Table::Lookup entry;
    Holders::iterator holder;
  };
  // Finds the holder of this cache and life. Empty if the block has no holder like that.
  std::optional<HolderEntry> find_held(const Holder& wanted, keys::BlockKey block)
      SL_REQUIRES(mutex_);
  void erase(const HolderEntry& held) SL_REQUIRES(mutex_);

  const std::size_t blocks_max_;
  mutable WriterFirstMutex mutex_;  // held for memory work only
  Table table_ SL_GUARDED_BY(mutex_);
  std::size_t holders_ SL_GUARDED_BY(mutex_) = 0;  // in the table.
  HeldBytes memory_ SL_GUARDED_BY(mutex_);
  // False after a refused claim, until the next step: one step asks the budget once.
  bool may_claim_ SL_GUARDED_BY(mutex_) = true;
  // Of the caches that stored since their drop. Separate from contents_, because each look-up reads
  // only lives.
  std::unordered_map<CacheId, std::uint32_t> lives_ SL_GUARDED_BY(mutex_);
  std::unordered_map<CacheId, Contents> contents_ SL_GUARDED_BY(mutex_);
  std::unordered_map<CacheId, std::uint64_t> bounds_ SL_GUARDED_BY(mutex_);
  std::vector<CacheId> gave_way_ SL_GUARDED_BY(mutex_);  // not returned by take_gave_way() yet
  std::uint32_t next_life_ SL_GUARDED_BY(mutex_) = kNoLife + 1;
  std::uint64_t refused_ SL_GUARDED_BY(mutex_) = 0;
  // cleared_: lives that wait for the next walk. swept_: lives that the running walk erases, in
  // ascending order. Empty if no walk runs. swept_to_: how far it is.
  std::vector<std::uint32_t> cleared_ SL_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> swept_ SL_GUARDED_BY(mutex_);
  Table::WalkPosition swept_to_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::index
