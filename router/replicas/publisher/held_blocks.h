// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "router/cache/operations/digest.h"
#include "router/cache/operations/operation.h"
#include "router/replicas/publisher/block_list.h"

// The agent's end of the streams that routers follow (router/replicas/frames).
namespace sightline::publisher {

// The part of a snapshot that was not read yet.
struct HeldSnapshot {
  // The order of the first block after the snapshot.
  std::uint64_t end = 0;
  // The next block to read.
  BlockList::Slot place = BlockList::kNone;
  // Blocks that changed or were erased since, by order, as they were.
  std::map<std::uint64_t, ListedBlock> changed;
  // The list as it was, if the cache was emptied since.
  std::optional<BlockList> cleared;
};

// All blocks that one cache holds on any tier, as its operations say. It can also return what the
// cache held at one moment of the past, while operations continue.
// Thread safety: one thread at a time.
class HeldBlocks {
 public:
  // Above blocks_max, further blocks are left out. left_out_total() counts them.
  explicit HeldBlocks(std::size_t blocks_max) : blocks_max_(blocks_max) {}

  // Applies the next operation of the cache. A block stored again keeps its first parent.
  void apply(const operations::Operation& operation);

  // The digest of all held blocks.
  [[nodiscard]] const operations::CacheDigest& digest() const { return digest_; }
  // True if blocks were left out since the last Clear. The digest is then not that of the cache.
  [[nodiscard]] bool is_capped() const { return is_capped_; }
  // Blocks that were left out since construction.
  [[nodiscard]] std::uint64_t left_out_total() const { return left_out_; }
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  // Bytes in use, with those of the snapshot.
  [[nodiscard]] std::size_t memory_bytes() const;

  // Begins a snapshot of the present blocks. Operations between the calls of
  // next_of_snapshot() do not change it. There is one snapshot at a time. An earlier one ends.
  void begin_snapshot();
  // Returns each block of the snapshot once, in the order in which the blocks were first stored.
  // Parents come before their children, except a parent that was removed and stored again. Returns
  // nothing at the end, or without a snapshot.
  std::optional<ListedBlock> next_of_snapshot();
  void end_snapshot() { snapshot_.reset(); }
  // Copies of blocks that are kept only for the snapshot, because they changed before it reached
  // them.
  [[nodiscard]] std::size_t kept_for_snapshot() const {
    return snapshot_ ? snapshot_->changed.size() : 0;
  }

 private:
  void store(const operations::Store& store);
  void remove(const operations::Remove& remove);
  void clear();
  // Keeps a copy for the snapshot. Call it before a block changes or is erased.
  void keep_for_snapshot(BlockList::Slot slot);

  std::size_t blocks_max_;
  BlockList blocks_;
  operations::CacheDigest digest_;
  bool is_capped_ = false;
  std::uint64_t left_out_ = 0;
  std::optional<HeldSnapshot> snapshot_;
};

}  // namespace sightline::publisher
