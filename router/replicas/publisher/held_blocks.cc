// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/publisher/held_blocks.h"

#include <utility>
#include <variant>

namespace sightline::publisher {

using keys::BlockKey;

namespace {

std::uint8_t bit_of(operations::Tier tier) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(tier));
}

// A node of std::map: its colour, three pointers and the allocator's overhead.
constexpr std::size_t kMapNodeBytes = 48;

}  // namespace

void HeldBlocks::apply(const operations::Operation& operation) {
  if (const auto* stored = std::get_if<operations::Store>(&operation)) return store(*stored);
  if (const auto* removed = std::get_if<operations::Remove>(&operation)) return remove(*removed);
  clear();
}

void HeldBlocks::store(const operations::Store& store) {
  const std::uint8_t bit = bit_of(store.tier);
  std::optional<BlockKey> parent = store.parent;
  for (const BlockKey key : store.keys) {
    const auto slot = blocks_.find(key);
    if (slot == BlockList::kNone && blocks_.size() >= blocks_max_) {
      // The cache is larger than our limit. From here on the digest differs from the cache's, and
      // beats report that.
      is_capped_ = true;
      ++left_out_;
    } else if (slot == BlockList::kNone) {
      blocks_.push_back({.key = key, .parent = parent, .tiers = bit});
      digest_.of(store.tier).add(key);
    } else if (const std::uint8_t tiers = blocks_.tiers(slot); (tiers & bit) == 0) {
      keep_for_snapshot(slot);
      blocks_.set_tiers(slot, tiers | bit);
      digest_.of(store.tier).add(key);
    }
    // Also behind a block that was left out: its children keep their true parent.
    parent = key;
  }
}

void HeldBlocks::remove(const operations::Remove& remove) {
  const std::uint8_t bit = bit_of(remove.tier);
  for (const BlockKey key : remove.keys) {
    const auto slot = blocks_.find(key);
    if (slot == BlockList::kNone || (blocks_.tiers(slot) & bit) == 0) continue;
    keep_for_snapshot(slot);
    const auto left = static_cast<std::uint8_t>(blocks_.tiers(slot) & ~bit);
    if (left != 0) {
      blocks_.set_tiers(slot, left);
    } else {
      // The slot may be used again by another block. So the snapshot's place moves on first.
      const bool is_place = snapshot_ && !snapshot_->cleared && snapshot_->place == slot;
      if (is_place) snapshot_->place = blocks_.next(slot);
      blocks_.erase(slot);
    }
    digest_.of(remove.tier).remove(key);
  }
}

void HeldBlocks::clear() {
  BlockList empty;
  std::swap(empty, blocks_);
  // The snapshot takes the whole old list. Copies of single blocks would be as large as the cache.
  if (snapshot_ && !snapshot_->cleared) snapshot_->cleared = std::move(empty);
  digest_ = {};
  is_capped_ = false;
}

std::size_t HeldBlocks::memory_bytes() const {
  std::size_t bytes = blocks_.memory_bytes();
  if (!snapshot_) return bytes;
  if (snapshot_->cleared) bytes += snapshot_->cleared->memory_bytes();
  return bytes + snapshot_->changed.size() *
                     (sizeof(std::pair<std::uint64_t, ListedBlock>) + kMapNodeBytes);
}

void HeldBlocks::begin_snapshot() {
  snapshot_.emplace();
  snapshot_->end = blocks_.pushed_total();
  snapshot_->place = blocks_.first();
}

std::optional<ListedBlock> HeldBlocks::next_of_snapshot() {
  if (!snapshot_) return std::nullopt;
  const BlockList& blocks = snapshot_->cleared ? *snapshot_->cleared : blocks_;
  BlockList::Slot& place = snapshot_->place;
  const bool is_there = place != BlockList::kNone && blocks.order(place) < snapshot_->end;
  auto& changed = snapshot_->changed;
  // Changed blocks are read from their copies, at their place in the order. Blocks that were added
  // later have a higher order than the snapshot's end.
  if (!changed.empty() && (!is_there || changed.begin()->first <= blocks.order(place))) {
    const auto [order, block] = *changed.begin();
    changed.erase(changed.begin());
    if (is_there && order == blocks.order(place)) place = blocks.next(place);
    return block;
  }
  if (!is_there) return std::nullopt;
  const ListedBlock block = blocks.at(place);
  place = blocks.next(place);
  return block;
}

void HeldBlocks::keep_for_snapshot(BlockList::Slot slot) {
  // After a Clear, the snapshot owns its own list, which nothing changes.
  if (!snapshot_ || snapshot_->cleared || snapshot_->place == BlockList::kNone) return;
  const std::uint64_t order = blocks_.order(slot);
  const bool is_to_come = order >= blocks_.order(snapshot_->place) && order < snapshot_->end;
  if (is_to_come) snapshot_->changed.try_emplace(order, blocks_.at(slot));
}

}  // namespace sightline::publisher
