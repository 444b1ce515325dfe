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

// What an engine remembers of media items by identifier, least recently used forgotten first.
// Serves as processor cache (weight = bytes of the processed item) and as encoder cache
// (weight = embeddings). Thread safety: none.
class MediaCache {
 public:
  // A capacity of 0 remembers nothing.
  explicit MediaCache(std::uint64_t capacity) : capacity_(capacity) {}

  // Prompt tokens of the item; counts as a use.
  std::optional<std::uint32_t> find(std::string_view identifier);

  struct Item {
    std::string identifier;
    std::uint32_t tokens = 0;
    std::uint64_t weight = 0;
  };
  // An item that is known already stays as it is. One heavier than the capacity is not kept.
  void add(Item item);

  void clear();

 private:
  const std::uint64_t capacity_;
  std::uint64_t weight_ = 0;
  std::list<Item> items_;  // most recently used first
  std::unordered_map<std::string_view, std::list<Item>::iterator> table_;  // keys live in items_
};

}  // namespace sightline::core
