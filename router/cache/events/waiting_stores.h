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

// Of one rank.
inline constexpr std::size_t kWaitingEventsMax = 1024;
inline constexpr std::size_t kWaitingBytesMax = 4U << 20U;  // memory, about

// Announced blocks whose parent is not known: kept until it is announced, in the order in which
// they came. Beyond a limit the oldest fall out; what is beyond it alone is not kept. Whatever the
// hashes are, each block costs the logarithm of how many wait.
// Thread safety: none.
class WaitingStores {
 public:
  struct Limits {
    std::size_t events_max = kWaitingEventsMax;
    std::size_t bytes_max = kWaitingBytesMax;
  };
  explicit WaitingStores(Limits limits) : limits_(limits) {}

  // The event has a parent. Returns how many blocks fell out, of this event or older ones.
  std::size_t keep(BlockStored event);
  // The events that hang on this block, no longer kept.
  std::vector<BlockStored> take(EngineHash parent);
  // A copy of the block is gone: no event vouches for it or for what follows it in the same event.
  // Returns how many blocks no longer wait.
  std::size_t cancel(EngineHash hash, std::optional<operations::Tier> tier);
  void clear();

  [[nodiscard]] bool empty() const { return events_.empty(); }
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }

 private:
  using Number = std::uint64_t;
  struct Child {
    EngineHash parent;
    Number number = 0;
    friend auto operator<=>(const Child&, const Child&) = default;
  };
  // The tier is part of the order, so that a removal finds what it ends and nothing else.
  struct Block {
    EngineHash hash;
    std::optional<operations::Tier> tier;
    Number number = 0;
    std::size_t place = 0;  // in the event
    friend auto operator<=>(const Block&, const Block&) = default;
  };

  BlockStored remove(Number number);
  void unlist_blocks(const BlockStored& event, Number number, std::size_t from);

  const Limits limits_;
  std::map<Number, BlockStored> events_;  // oldest first
  // Ordered: an engine may repeat a hash as often as it likes, or choose hashes that would meet in
  // one bucket.
  std::set<Child> children_;
  std::set<Block> blocks_;
  std::size_t bytes_ = 0;
  Number next_ = 0;
};

}  // namespace sightline::events
