// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/core/media_cache.h"

#include <utility>

namespace sightline::core {

std::optional<std::uint32_t> MediaCache::find(std::string_view identifier) {
  const auto found = table_.find(identifier);
  if (found == table_.end()) return std::nullopt;
  // A splice moves no item in memory, so the views and iterators in table_ stay valid.
  items_.splice(items_.begin(), items_, found->second);
  return found->second->tokens;
}

void MediaCache::add(Item item) {
  // find() also marks a known item as used.
  if (item.weight > capacity_ || capacity_ == 0 || find(item.identifier)) return;
  weight_ += item.weight;
  items_.push_front(std::move(item));
  table_.emplace(items_.front().identifier, items_.begin());
  while (weight_ > capacity_) {
    weight_ -= items_.back().weight;
    table_.erase(items_.back().identifier);
    items_.pop_back();
  }
}

void MediaCache::clear() {
  // The table goes first, because its keys are views of items_.
  table_.clear();
  items_.clear();
  weight_ = 0;
}

}  // namespace sightline::core
