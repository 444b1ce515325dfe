// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sightline::core {

// The media items that an engine remembers, by identifier. The least recently used item is dropped
// first. It serves as processor cache (weight: bytes of the processed item) and as encoder cache
// (weight: embeddings).
//
// Thread safety: one owner.
class MediaCache {
 public:
  // With a capacity of 0 it keeps nothing.
  explicit MediaCache(std::uint64_t capacity) : capacity_(capacity) {}

  // Returns the prompt tokens of an item. This counts as a use.
  std::optional<std::uint32_t> find(std::string_view identifier);

  // `tokens` is the number of prompt tokens of the item. The unit of `weight` is that of the
  // capacity.
  struct Item {
    std::string identifier;
    std::uint32_t tokens = 0;
    std::uint64_t weight = 0;
  };
  // Adds an item. A known item stays as it is. An item with more weight than the capacity is not
  // kept.
  void add(Item item);

  // Drops all items.
  void clear();

 private:
  const std::uint64_t capacity_;
  std::uint64_t weight_ = 0;
  std::list<Item> items_;  // most recently used first
  std::unordered_map<std::string_view, std::list<Item>::iterator> table_;  // views of items_
};

}  // namespace sightline::core
