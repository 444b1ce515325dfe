// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "router/cache/keys/block_key.h"

namespace sightline::publisher {

// A block that a cache holds.
struct ListedBlock {
  keys::BlockKey key;
  // Absent: the first block of a prompt.
  std::optional<keys::BlockKey> parent;
  // One bit for each tier that holds it, Gpu is the lowest.
  std::uint8_t tiers = 0;

  bool operator==(const ListedBlock&) const = default;
};

// Blocks in the order in which they were added, found by key. A block takes about 40 bytes: 32 for
// its slot and 5 to 11 for the hash table. The table consists of 1,024 parts that grow one at a
// time, so no single call is slow. Freeing the whole list takes some milliseconds, for any number
// of blocks.
// Thread safety: one thread at a time.
class BlockList {
 public:
  // The place of a block. It stays valid until the block is erased. A later block may then get it.
  using Slot = std::uint32_t;
  static constexpr Slot kNone = std::numeric_limits<Slot>::max();

  // Returns kNone if the key is not in the list.
  [[nodiscard]] Slot find(keys::BlockKey key) const;
  // Adds a block behind the last one and returns its slot. The key must not be in the list.
  Slot push_back(const ListedBlock& block);
  // Removes a block. Its slot must be in use.
  void erase(Slot slot);
  // `tiers` are bits as in ListedBlock. The caller erases a block that no tier holds.
  void set_tiers(Slot slot, std::uint8_t tiers) { entry(slot).tiers = tiers & kTiersMask; }

  // All of the following need a slot in use.
  [[nodiscard]] ListedBlock at(Slot slot) const;
  [[nodiscard]] std::uint8_t tiers(Slot slot) const {
    return static_cast<std::uint8_t>(entry(slot).tiers);
  }
  // The number of blocks that were added before this one, since the list was made.
  [[nodiscard]] std::uint64_t order(Slot slot) const { return entry(slot).order; }
  // The oldest block, kNone if the list is empty.
  [[nodiscard]] Slot first() const { return first_; }
  // The block that was added next, kNone after the last one.
  [[nodiscard]] Slot next(Slot slot) const { return entry(slot).next; }
  // Blocks that were ever added.
  [[nodiscard]] std::uint64_t pushed_total() const { return pushed_; }
  // The number of blocks.
  [[nodiscard]] std::size_t size() const { return size_; }
  // Bytes in use by this list, with its unused slots.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  // One bit for each of the three tiers.
  static constexpr std::uint8_t kTiersMask = 7;
  // Slots are allocated in chunks of 128 KiB. Growth never moves entries.
  static constexpr std::size_t kSlotsPerChunk = 4'096;
  // The low 10 bits of a key's hash choose the part.
  static constexpr std::size_t kParts = 1'024;

  // One block and its neighbours in the order of addition.
  struct Entry {
    keys::BlockKey key;
    keys::BlockKey parent;
    Slot previous = kNone;
    Slot next = kNone;
    std::uint64_t has_parent : 1;
    std::uint64_t tiers : 3;
    std::uint64_t order : 60;
  };
  static_assert(sizeof(Entry) == 32);
  // A hash table with open addressing and linear probing. kNone marks a free place. At most three
  // quarters of the places are in use.
  struct SlotTable {
    std::vector<Slot> slots;
    std::size_t size = 0;
  };

  [[nodiscard]] Entry& entry(Slot slot) {
    return (*chunks_[slot / kSlotsPerChunk])[slot % kSlotsPerChunk];
  }
  [[nodiscard]] const Entry& entry(Slot slot) const {
    return (*chunks_[slot / kSlotsPerChunk])[slot % kSlotsPerChunk];
  }
  // Returns a free slot.
  Slot take_slot();
  // Puts the slot into a part that has room.
  void put(SlotTable& part, Slot slot);
  // Doubles the part.
  void grow(SlotTable& part);
  // Takes the slot out of its part.
  void take_out(SlotTable& part, Slot slot);

  std::vector<std::unique_ptr<std::array<Entry, kSlotsPerChunk>>> chunks_;
  std::array<SlotTable, kParts> parts_;
  Slot first_ = kNone;
  Slot last_ = kNone;
  // Erased slots, linked by `next`.
  Slot free_ = kNone;
  // Slots that were ever in use.
  Slot used_ = 0;
  std::size_t size_ = 0;
  std::uint64_t pushed_ = 0;
};

}  // namespace sightline::publisher
