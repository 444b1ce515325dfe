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

// A block that is held.
struct Block {
  keys::BlockKey key;
  std::optional<keys::BlockKey> parent;  // nothing: the first of a prompt
  std::uint8_t tiers = 0;                // a bit for each tier that it is held on, Gpu's the lowest

  bool operator==(const Block&) const = default;
};

// Blocks in the order in which they came, found by key. A block takes some 40 bytes: 32 of its slot
// and 5 to 11 of the hash table, which grows a 1,024th at a time. All of them are given up
// at once in some milliseconds, however many.
// Thread safety: none.
class BlockList {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = std::numeric_limits<Slot>::max();

  [[nodiscard]] Slot find(keys::BlockKey key) const;  // kNone: not there
  // Behind the last one. The key is not there. Returns its slot, which it keeps until erased.
  Slot push_back(const Block& block);
  void erase(Slot slot);
  void set_tiers(Slot slot, std::uint8_t tiers) { entry(slot).tiers = tiers & kTiersMask; }

  [[nodiscard]] Block at(Slot slot) const;
  [[nodiscard]] std::uint8_t tiers(Slot slot) const {
    return static_cast<std::uint8_t>(entry(slot).tiers);
  }
  // How many came before it, since the list was made.
  [[nodiscard]] std::uint64_t order(Slot slot) const { return entry(slot).order; }
  [[nodiscard]] Slot first() const { return first_; }
  [[nodiscard]] Slot next(Slot slot) const { return entry(slot).next; }  // kNone: the last
  [[nodiscard]] std::uint64_t pushed_total() const { return pushed_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  static constexpr std::uint8_t kTiersMask = 7;
  static constexpr std::size_t kSlotsPerChunk = 4'096;
  static constexpr std::size_t kParts = 1'024;

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
  // Open addressing, linear probing; kNone: free. At most three quarters are taken.
  struct Part {
    std::vector<Slot> slots;
    std::size_t size = 0;
  };

  [[nodiscard]] Entry& entry(Slot slot) {
    return (*chunks_[slot / kSlotsPerChunk])[slot % kSlotsPerChunk];
  }
  [[nodiscard]] const Entry& entry(Slot slot) const {
    return (*chunks_[slot / kSlotsPerChunk])[slot % kSlotsPerChunk];
  }
  Slot take_slot();
  void put(Part& part, Slot slot);
  void grow(Part& part);
  void take_out(Part& part, Slot slot);

  std::vector<std::unique_ptr<std::array<Entry, kSlotsPerChunk>>> chunks_;
  std::array<Part, kParts> parts_;
  Slot first_ = kNone;
  Slot last_ = kNone;
  Slot free_ = kNone;  // of those that were erased; linked by `next`
  Slot used_ = 0;      // slots that were ever taken
  std::size_t size_ = 0;
  std::uint64_t pushed_ = 0;
};

}  // namespace sightline::publisher
