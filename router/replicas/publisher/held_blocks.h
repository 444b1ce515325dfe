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

// What was held at one moment, as far as it is not read.
struct HeldSnapshot {
  std::uint64_t end = 0;  // the order of the first block that is not of it
  BlockList::Slot place = BlockList::kNone;
  std::map<std::uint64_t, Block> changed;  // by order, as they were
  std::optional<BlockList> cleared;        // the list, if the cache was emptied since
};

// All that one cache holds by its operations, on any tier, and at one moment of the past.
// Thread safety: none.
class HeldBlocks {
 public:
  // Above blocks_max further blocks are left out.
  explicit HeldBlocks(std::size_t blocks_max) : blocks_max_(blocks_max) {}

  // A block that is stored again keeps its first parent.
  void apply(const operations::Operation& operation);

  [[nodiscard]] const operations::CacheDigest& digest() const { return digest_; }
  // Blocks were left out since it was last empty by a Clear: the digest is not that of the cache.
  [[nodiscard]] bool is_capped() const { return is_capped_; }
  [[nodiscard]] std::uint64_t left_out_total() const { return left_out_; }
  [[nodiscard]] std::size_t size() const { return blocks_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const;

  // From now on next_of_snapshot() gives what is held at this moment, whatever is applied between
  // its calls. There is one snapshot at a time: the one before ends.
  void begin_snapshot();
  // Each block once, in the order in which they were first stored: parents come before their
  // children, but for a parent that was lost and came again. Nothing: that was all, or there is no
  // snapshot.
  std::optional<Block> next_of_snapshot();
  void end_snapshot() { snapshot_.reset(); }
  // Blocks that are kept for the snapshot alone: they changed before it came to them.
  [[nodiscard]] std::size_t kept_for_snapshot() const {
    return snapshot_ ? snapshot_->changed.size() : 0;
  }

 private:
  void store(const operations::Store& store);
  void remove(const operations::Remove& remove);
  void clear();
  // To be called before a block changes or is erased.
  void keep_for_snapshot(BlockList::Slot slot);

  std::size_t blocks_max_;
  BlockList blocks_;
  operations::CacheDigest digest_;
  bool is_capped_ = false;
  std::uint64_t left_out_ = 0;
  std::optional<HeldSnapshot> snapshot_;
};

}  // namespace sightline::publisher
