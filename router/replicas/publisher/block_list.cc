// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/publisher/block_list.h"

#include "common/base/check.h"

#include "router/cache/operations/digest.h"

namespace sightline::publisher {

namespace {

constexpr std::size_t kPartSlotsMin = 8;

// Where the search for a key begins, before it is cut to the size of the part. The low 10 bits
// choose the part, so they are equal for all keys in it.
std::size_t home_of(keys::BlockKey key) { return operations::mixed(key) >> 10U; }

}  // namespace

BlockList::Slot BlockList::find(keys::BlockKey key) const {
  const SlotTable& part = parts_[operations::mixed(key) % kParts];
  if (part.slots.empty()) return kNone;
  const std::size_t mask = part.slots.size() - 1;
  for (std::size_t i = home_of(key) & mask;; i = (i + 1) & mask) {
    const Slot slot = part.slots[i];
    if (slot == kNone || entry(slot).key == key) return slot;
  }
}

BlockList::Slot BlockList::push_back(const ListedBlock& block) {
  const Slot slot = take_slot();
  Entry& made = entry(slot);
  made.key = block.key;
  made.parent = block.parent.value_or(keys::BlockKey{});
  made.has_parent = block.parent ? 1U : 0U;
  made.tiers = block.tiers & kTiersMask;
  made.order = pushed_++ & ((std::uint64_t{1} << 60U) - 1);
  made.previous = last_;
  made.next = kNone;
  // Links the block behind the last one.
  (last_ == kNone ? first_ : entry(last_).next) = slot;
  last_ = slot;
  ++size_;

  SlotTable& part = parts_[operations::mixed(block.key) % kParts];
  // The part grows before it is full. A probe ends at a free place, so there must always be one.
  if ((part.size + 1) * 4 > part.slots.size() * 3) grow(part);
  put(part, slot);
  ++part.size;
  return slot;
}

void BlockList::erase(Slot slot) {
  Entry& gone = entry(slot);
  take_out(parts_[operations::mixed(gone.key) % kParts], slot);
  (gone.previous == kNone ? first_ : entry(gone.previous).next) = gone.next;
  (gone.next == kNone ? last_ : entry(gone.next).previous) = gone.previous;
  gone.next = free_;
  free_ = slot;
  --size_;
}

ListedBlock BlockList::at(Slot slot) const {
  const Entry& found = entry(slot);
  ListedBlock block{
      .key = found.key, .parent = {}, .tiers = static_cast<std::uint8_t>(found.tiers)};
  if (found.has_parent != 0) block.parent = found.parent;
  return block;
}

std::size_t BlockList::memory_bytes() const {
  std::size_t bytes = chunks_.size() * sizeof(*chunks_[0]) + chunks_.capacity() * sizeof(void*);
  for (const SlotTable& part : parts_) bytes += part.slots.capacity() * sizeof(Slot);
  return bytes + sizeof(*this);
}

BlockList::Slot BlockList::take_slot() {
  // Erased slots are used again before new ones, so a cache that only changes takes no more memory.
  if (free_ != kNone) {
    const Slot slot = free_;
    free_ = entry(slot).next;
    return slot;
  }
  SL_CHECK(used_ != kNone);
  if (used_ % kSlotsPerChunk == 0) {
    chunks_.push_back(std::make_unique<std::array<Entry, kSlotsPerChunk>>());
  }
  return used_++;
}

void BlockList::put(SlotTable& part, Slot slot) {
  const std::size_t mask = part.slots.size() - 1;
  std::size_t i = home_of(entry(slot).key) & mask;
  while (part.slots[i] != kNone) i = (i + 1) & mask;
  part.slots[i] = slot;
}

void BlockList::grow(SlotTable& part) {
  std::vector<Slot> old(part.slots.empty() ? kPartSlotsMin : part.slots.size() * 2, kNone);
  old.swap(part.slots);
  for (const Slot slot : old) {
    if (slot != kNone) put(part, slot);
  }
}

// Moves later entries of the same run into the hole, as long as their own searches still find them
// there. So no mark of the erased entry stays, and searches do not grow longer with time.
void BlockList::take_out(SlotTable& part, Slot slot) {
  const std::size_t mask = part.slots.size() - 1;
  std::size_t hole = home_of(entry(slot).key) & mask;
  while (part.slots[hole] != slot) hole = (hole + 1) & mask;
  for (std::size_t i = (hole + 1) & mask; part.slots[i] != kNone; i = (i + 1) & mask) {
    const std::size_t home = home_of(entry(part.slots[i]).key) & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;  // its search begins behind the hole
    part.slots[hole] = part.slots[i];
    hole = i;
  }
  part.slots[hole] = kNone;
  --part.size;
}

}  // namespace sightline::publisher
