// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "router/cache/operations/operation.h"
#include "router/cache/wire/kv_event.h"

namespace sightline::events {

using content::BlockExtra;
using content::MediaReference;
using wire::AllBlocksCleared;
using wire::BlockRemoved;
using wire::BlockStored;
using wire::EngineHash;
using wire::EngineHashing;
using wire::EventBatch;
using wire::KvEvent;
using wire::MalformedEvent;
using wire::SpecKind;
using wire::UnknownEvent;

// Limits for one rank.
inline constexpr std::size_t kWaitingEventsMax = 1024;
// Approximate memory.
inline constexpr std::size_t kWaitingBytesMax = 4U << 20U;

// Stores whose parent is not known. They wait until the parent is announced, in the order in which
// they came. Beyond a limit, the oldest stores are dropped. A store that exceeds a limit alone is
// not kept. For any choice of hashes, the cost of a block is logarithmic in the number of waiting
// blocks.
// Thread safety: one thread at a time.
class WaitingStores {
 public:
  // The limits of one object. Tests use smaller ones.
  struct Limits {
    std::size_t events_max = kWaitingEventsMax;
    std::size_t bytes_max = kWaitingBytesMax;
  };
  explicit WaitingStores(Limits limits) : limits_(limits) {}

  // Keeps a store that has a parent. Returns how many blocks were dropped, of this store or of
  // older ones.
  std::size_t keep(BlockStored event);
  // Removes and returns the stores whose parent is this block.
  std::vector<BlockStored> take(EngineHash parent);
  // Handles the removal of a copy of a block. The block and the blocks after it in the same store
  // no longer wait, because the engine may not hold them. Returns how many blocks were dropped.
  std::size_t cancel(EngineHash hash, std::optional<operations::Tier> tier);
  // Drops all stores.
  void clear();

  // Returns whether no store waits.
  [[nodiscard]] bool empty() const { return events_.empty(); }
  // Returns the number of waiting blocks of all stores.
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

 private:
  // Counts the stores in the order in which they came.
  using Number = std::uint64_t;
  // A store, found by its parent.
  struct Child {
    EngineHash parent;
    Number number = 0;
    friend auto operator<=>(const Child&, const Child&) = default;
  };
  // The tier is part of the order. So a removal finds the blocks of its own tier and no others.
  struct WaitingBlock {
    EngineHash hash;
    std::optional<operations::Tier> tier;
    Number number = 0;
    // Index of the block in its store.
    std::size_t place = 0;
    friend auto operator<=>(const WaitingBlock&, const WaitingBlock&) = default;
  };

  // Removes a store and all entries that point to it.
  BlockStored remove(Number number);
  // Removes the entries of the store's blocks from index `from` on.
  void unlist_blocks(const BlockStored& event, Number number, std::size_t from);

  const Limits limits_;
  // The oldest first.
  std::map<Number, BlockStored> events_;
  // Ordered sets, not hash tables. An engine may repeat a hash any number of times, or choose
  // hashes that would meet in one bucket.
  std::set<Child> children_;
  std::set<WaitingBlock> blocks_;
  // The approximate memory of all stores.
  std::size_t bytes_ = 0;
  Number next_ = 0;
};

}  // namespace sightline::events
