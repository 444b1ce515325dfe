// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "router/cache/keys/block_key.h"

namespace sightline::index {

// A hash table by block key in 1,024 parts, which grow and shrink one at a time. With 16 M entries,
// a part takes a millisecond or two to grow. One large table would take seconds. The table can be
// walked in steps.
// Thread safety: one thread at a time.
template <class Value>
class PartedTable {
 public:
  // The alignment puts all that a look-up reads of a part into one cache line.
  struct alignas(64) TablePart : std::unordered_map<keys::BlockKey, Value> {};

  // An entry and its part.
  struct Lookup {
    TablePart* part;
    typename TablePart::iterator entry;
    // Returns whether there is an entry.
    explicit operator bool() const { return entry != part->end(); }
    [[nodiscard]] Value& value() const { return entry->second; }
  };

  // Returns the entry, or the part's end.
  [[nodiscard]] Lookup find(keys::BlockKey key) {
    TablePart& part = part_of(key);
    return {&part, part.find(key)};
  }
  // Returns null if there is no entry.
  [[nodiscard]] const Value* find(keys::BlockKey key) const {
    const TablePart& part = parts_[place_of(key)];
    const auto entry = part.find(key);
    return entry == part.end() ? nullptr : &entry->second;
  }
  // Returns the entry. Adds one if the key has no entry.
  Lookup insert(keys::BlockKey key) {
    TablePart& part = part_of(key);
    const std::size_t buckets = part.bucket_count();
    const auto [entry, is_new] = part.try_emplace(key);
    size_ += is_new ? 1 : 0;
    note_buckets(part, buckets);
    return {&part, entry};
  }
  // Erases an entry. Its part may shrink, which voids other Lookup values of the part.
  void erase(const Lookup& found) {
    --size_;
    found.part->erase(found.entry);
    shrink(*found.part);
  }
  // Erases an entry for a visitor of walk(). Returns the next entry of the part.
  typename TablePart::iterator erase_visited(TablePart& part, typename TablePart::iterator entry) {
    --size_;
    return part.erase(entry);
  }
  // Returns the number of entries of all parts.
  [[nodiscard]] std::size_t size() const { return size_; }
  // Returns the number of buckets of all parts. Each takes a pointer.
  [[nodiscard]] std::size_t buckets() const { return buckets_; }

  // Returns true if a large part has grown or shrunk since the last call. That took as long as one
  // step may take.
  bool take_has_rehashed() { return std::exchange(has_rehashed_, false); }

  // The position of a walk.
  class WalkPosition {
   public:
    // Returns whether the walk has visited all parts.
    [[nodiscard]] bool is_end() const { return part_ == kParts; }

   private:
    friend class PartedTable;
    // The present part.
    std::size_t part_ = 0;
    // Empty: the part's first entry.
    std::optional<keys::BlockKey> next_;
    // Buckets of the part at the last step. If their number has changed, so has the order of
    // entries.
    std::size_t buckets_ = 0;
  };

  // Visits up to entries_max entries from the place on, and moves the place. `visit` receives a
  // part and an entry's iterator, and returns the next iterator. An entry that stays all the time
  // is visited at least once. If its part grew or shrank between two steps, or lost the entry at
  // the place, it is visited twice.
  template <class Table, class Visitor>
  static void walk(Table& table, WalkPosition& place, std::size_t entries_max, Visitor visit) {
    for (std::size_t left = entries_max; left > 0 && !place.is_end(); --left) {
      auto& part = table.parts_[place.part_];
      const bool is_same = place.next_ && part.bucket_count() == place.buckets_;
      auto entry = is_same ? part.find(*place.next_) : part.end();
      if (entry == part.end()) entry = part.begin();
      for (; left > 1 && entry != part.end(); --left) entry = visit(part, entry);
      if (entry == part.end()) {
        if constexpr (!std::is_const_v<Table>) table.shrink(part);
        ++place.part_;
        place.next_.reset();
      } else {
        place.next_ = entry->first;
        place.buckets_ = part.bucket_count();
      }
    }
  }

 private:
  static constexpr std::size_t kParts = 1'024;
  // A part with so many entries grows in about 0.1 ms.
  static constexpr std::size_t kQuickEntriesMax = 1'024;
  // A part with so many times more buckets than entries shrinks to two buckets for each entry. So
  // its entries must double before it grows again. A part with few buckets stays as it is.
  static constexpr std::size_t kSparseFactor = 8;
  static constexpr std::size_t kSmallBuckets = 32;

  // The remainder selects the part, because keys are as good as random.
  static std::size_t place_of(keys::BlockKey key) { return key.value % kParts; }
  TablePart& part_of(keys::BlockKey key) { return parts_[place_of(key)]; }

  // Updates the sum of all buckets after a part may have grown or shrunk.
  void note_buckets(const TablePart& part, std::size_t before) {
    if (part.bucket_count() == before) return;
    buckets_ += part.bucket_count() - before;  // modulo 2^64 if it has shrunk
    if (part.size() > kQuickEntriesMax) has_rehashed_ = true;
  }
  // Gives the memory of a sparse part back.
  void shrink(TablePart& part) {
    const std::size_t buckets = part.bucket_count();
    if (buckets <= kSmallBuckets || buckets / kSparseFactor < part.size()) return;
    try {
      part.rehash(2 * part.size());
    } catch (const std::bad_alloc&) {
      return;  // it stays as it is until the next erase
    }
    note_buckets(part, buckets);
  }

  std::array<TablePart, kParts> parts_;
  std::size_t size_ = 0;
  // Buckets of all parts. An empty part has one.
  std::size_t buckets_ = kParts;
  bool has_rehashed_ = false;
};

}  // namespace sightline::index
