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

// What a cache holds between two drops is one life of it; lives are numbered through.
//
//                 store (the next number)                drop
//    no life ------------------------------> life n --------------> no life
//                                              |   store, remove
//                                              +---> life n
//
//    a holder in the table:   counts while life n is its cache's
//                             after the drop it counts no more, at once, and is swept away in steps
namespace sightline::index {

// Distinct keys an index takes unless told otherwise: about 1.5 GB when full.
inline constexpr std::size_t kBlocksMax = 16'000'000;

// The plain form of an index: a hash table from key to its holders. Exact, so it also serves as the
// reference for other implementations.
//
// While there is room a cache takes what it likes. When the index is full, whoever holds more than
// its bound (set_bounds(), else an equal share of the index) and an eighth gives way to one within
// its bound that stores: it loses all at once, and is held to its bound until it is cleared. Where
// nobody is beyond its bound, new keys are refused.
//
// A clear hides what the cache
// holds at once and then walks the blocks it names, or else the whole table, unless that is put off
// (clear_later); until then that memory still counts in blocks_total(), and a store that finds the
// table full walks first. No operation keeps others out for more than a millisecond or two, growth
// and held() included, and look-ups without pause do not keep a writer out.
class ExactIndex : public IndexReader, public IndexWriter, public IndexStatistics {
 public:
  // What it takes is charged to `memory`, about, in steps of 1 MiB; where there is no more, it is
  // full. Null: nothing is charged. It outlives the index.
  explicit ExactIndex(std::size_t blocks_max = kBlocksMax, ByteBudget* memory = nullptr)
      : blocks_max_(blocks_max), memory_(memory) {}

  [[nodiscard]] Overlaps match(std::span<const keys::BlockKey> prompt) const override;

  void apply(CacheId cache, const operations::Operation& operation) override;
  // The same one by one. A drop() while another thread stores ends that.
  void store(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks);
  void remove(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks);
  void drop(CacheId cache);
  void drop_known(CacheId cache, std::span<const keys::BlockKey> blocks);
  void clear_later(CacheId cache) override;
  bool reclaim_some() override;

  // Blocks that engines have room for on their GPUs; what they hold on other tiers is bound to a
  // share in any case. Takes the place of all that were set before.
  struct Bound {
    CacheId cache;
    std::uint64_t engine_blocks = 0;
  };
  void set_bounds(const std::vector<Bound>& bounds);
  // The caches that gave way since this was called last, each once.
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
    std::uint32_t tiers = 0;  // bit t: held on tier t; never 0 in the table
  };
  struct Contents {
    operations::CacheDigest digest;
    std::uint64_t refused = 0;
    bool gave_way = false;
  };
  using Holders = std::vector<Holder>;  // in the order of comes_before()
  using Table = PartedTable<Holders>;

  static bool comes_before(const Holder& a, const Holder& b);
  static bool same_bytes(const Holders& a, const Holders& b);
  [[nodiscard]] std::uint32_t life_of(CacheId cache) const SL_REQUIRES_SHARED(mutex_);
  // Its life from now on: the one it has, or a new one.
  std::uint32_t begin_life(CacheId cache);
  // What the cache holds counts no more. Returns its life until now, which is left in the table;
  // none, if nothing of it is there.
  std::uint32_t end_life(CacheId cache) SL_REQUIRES(mutex_);
  // Looks through so many entries for what is left of lives that were cleared. True: there is more.
  bool sweep(std::size_t entries_max) SL_REQUIRES(mutex_);
  // There is no room for one more key, or holder of one.
  [[nodiscard]] bool is_full() SL_REQUIRES(mutex_) {
    return table_.size() >= blocks_max_ || !claim_memory();
  }
  // Keys for which there is room, those that it has included: where memory lacks, as many as it
  // has.
  [[nodiscard]] std::size_t capacity() const SL_REQUIRES_SHARED(mutex_);
  bool claim_memory() SL_REQUIRES(mutex_);
  void give_memory_back() SL_REQUIRES(mutex_);
  [[nodiscard]] std::size_t memory_bytes() const SL_REQUIRES_SHARED(mutex_);
  [[nodiscard]] bool needs_room(const Holder& self, keys::BlockKey block) SL_REQUIRES(mutex_);
  // How many blocks the cache holds beyond its bound; `more`: if it held so many more on the tier.
  struct More {
    Tier tier = Tier::Gpu;
    std::uint64_t blocks = 0;
  };
  [[nodiscard]] std::uint64_t beyond_bound(CacheId cache, const Contents& contents,
                                           const More& more) const SL_REQUIRES_SHARED(mutex_);
  // Has the cache that is farthest beyond its bound give way to this one. False: there is none, or
  // this one is beyond its own.
  bool make_room_for(CacheId cache) SL_REQUIRES(mutex_);
  // Visits some blocks at a time under the lock, which others get in between. `visit` returns how
  // many of those it was given it has taken.
  template <class Visitor>
  void in_steps(std::span<const keys::BlockKey> blocks, Visitor visit);
  // Visits blocks one by one, until a part of the table has taken a step's time. Returns how many.
  template <class Visitor>
  std::size_t until_rehashed(std::span<const keys::BlockKey> blocks, Visitor visit)
      SL_REQUIRES(mutex_);
  // Stores the first ones and returns how many.
  std::size_t store_some(const Holder& self, Tier tier, std::span<const keys::BlockKey> blocks)
      SL_REQUIRES(mutex_);
  void store_one(const Holder& self, Tier tier, Contents& contents, keys::BlockKey block)
      SL_REQUIRES(mutex_);
  void refuse(Contents& contents) SL_REQUIRES(mutex_);
  void remove_one(const Holder& self, Tier tier, Contents& contents, keys::BlockKey block)
      SL_REQUIRES(mutex_);

  struct Held {
    Table::Found entry;
    Holders::iterator holder;
  };
  // The place of a holder of this rank and life.
  std::optional<Held> find_held(const Holder& wanted, keys::BlockKey block) SL_REQUIRES(mutex_);
  void erase(const Held& held) SL_REQUIRES(mutex_);

  const std::size_t blocks_max_;
  mutable WriterFirstMutex mutex_;  // held for memory work only
  Table table_ SL_GUARDED_BY(mutex_);
  std::size_t holders_ SL_GUARDED_BY(mutex_) = 0;  // in the table
  HeldBytes memory_ SL_GUARDED_BY(mutex_);
  bool may_claim_ SL_GUARDED_BY(mutex_) = true;  // once a step where there is none
  // Of those that stored since their drop. Each look-up reads lives, and only them.
  std::unordered_map<CacheId, std::uint32_t> lives_ SL_GUARDED_BY(mutex_);
  std::unordered_map<CacheId, Contents> contents_ SL_GUARDED_BY(mutex_);
  std::unordered_map<CacheId, std::uint64_t> bounds_ SL_GUARDED_BY(mutex_);
  std::vector<CacheId> gave_way_ SL_GUARDED_BY(mutex_);  // not told yet
  std::uint32_t next_life_ SL_GUARDED_BY(mutex_) = kNoLife + 1;
  std::uint64_t refused_ SL_GUARDED_BY(mutex_) = 0;
  // Lives that wait for the next walk; those that the walk under way sweeps, in order, none if
  // there is none; and how far it is.
  std::vector<std::uint32_t> cleared_ SL_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> swept_ SL_GUARDED_BY(mutex_);
  Table::Place swept_to_ SL_GUARDED_BY(mutex_);
};

}  // namespace sightline::index
