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

// A hash table by block key in many parts, which grow and shrink one at a time: with 16 M entries
// that takes a millisecond or two, where one large table would take seconds. It can be walked in
// steps.
// Thread safety: none.
template <class Value>
class PartedTable {
 public:
  // What a look-up reads of a part lies in one cache line.
  struct alignas(64) Part : std::unordered_map<keys::BlockKey, Value> {};

  // An entry and the part it is in.
  struct Found {
    Part* part;
    typename Part::iterator entry;
    explicit operator bool() const { return entry != part->end(); }
    [[nodiscard]] Value& value() const { return entry->second; }
  };

  [[nodiscard]] Found find(keys::BlockKey key) {
    Part& part = part_of(key);
    return {&part, part.find(key)};
  }
  // Null: not there.
  [[nodiscard]] const Value* find(keys::BlockKey key) const {
    const Part& part = parts_[place_of(key)];
    const auto entry = part.find(key);
    return entry == part.end() ? nullptr : &entry->second;
  }
  // The entry, made if it is not there.
  Found insert(keys::BlockKey key) {
    Part& part = part_of(key);
    const std::size_t buckets = part.bucket_count();
    const auto [entry, is_new] = part.try_emplace(key);
    size_ += is_new ? 1 : 0;
    note_buckets(part, buckets);
    return {&part, entry};
  }
  void erase(const Found& found) {
    --size_;
    found.part->erase(found.entry);
    shrink(*found.part);
  }
  // Only for visitors of walk(). Returns the entry behind it in its part.
  typename Part::iterator erase_visited(Part& part, typename Part::iterator entry) {
    --size_;
    return part.erase(entry);
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  // Of all parts: each takes a pointer.
  [[nodiscard]] std::size_t buckets() const { return buckets_; }

  // True if a large part has grown or shrunk since the last call: that took as long as a step may.
  bool take_has_rehashed() { return std::exchange(has_rehashed_, false); }

  // How far a walk has come.
  class Place {
   public:
    [[nodiscard]] bool is_end() const { return part_ == kParts; }

   private:
    friend class PartedTable;
    std::size_t part_ = 0;
    std::optional<keys::BlockKey> next_;  // nothing: the part's first
    std::size_t buckets_ = 0;
  };

  // Visits some entries from the place on and moves it. `visit` takes a part and an entry's
  // iterator and returns the one behind it. Entries that stay all the time are visited, of a part
  // that grew or shrank between two steps, or lost the entry at the place, twice.
  template <class Table, class Visitor>
  static void walk(Table& table, Place& place, std::size_t entries_max, Visitor visit) {
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
  // A part of so many entries grows in some 0.1 ms.
  static constexpr std::size_t kQuickEntriesMax = 1'024;
  // A part with so many times more buckets than entries shrinks to twice as many, so that it
  // doubles before it grows again. One of few buckets stays as it is.
  static constexpr std::size_t kSparseFactor = 8;
  static constexpr std::size_t kSmallBuckets = 32;

  // Keys are as good as random.
  static std::size_t place_of(keys::BlockKey key) { return key.value % kParts; }
  Part& part_of(keys::BlockKey key) { return parts_[place_of(key)]; }

  void note_buckets(const Part& part, std::size_t before) {
    if (part.bucket_count() == before) return;
    buckets_ += part.bucket_count() - before;  // modulo 2^64 where it has shrunk
    if (part.size() > kQuickEntriesMax) has_rehashed_ = true;
  }
  void shrink(Part& part) {
    const std::size_t buckets = part.bucket_count();
    if (buckets <= kSmallBuckets || buckets / kSparseFactor < part.size()) return;
    try {
      part.rehash(2 * part.size());
    } catch (const std::bad_alloc&) {
      return;  // it stays as it is until the next entry is erased
    }
    note_buckets(part, buckets);
  }

  std::array<Part, kParts> parts_;
  std::size_t size_ = 0;
  std::size_t buckets_ = kParts;  // an empty part has one
  bool has_rehashed_ = false;
};

}  // namespace sightline::index
