// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/events/waiting_stores.h"

#include <utility>

namespace sightline::events {

namespace {

// Includes the entry in the map of stores.
constexpr std::size_t kBytesPerEvent = 512;
// Includes the entries in the ordered sets.
constexpr std::size_t kBytesPerHash = 96;

// Returns the memory of the store's blocks from index `from` on.
std::size_t bytes_of(const BlockStored& event, std::size_t from) {
  const std::size_t blocks = event.hashes.size() - from;
  std::size_t bytes = blocks * (kBytesPerHash + event.block_size * sizeof(std::int64_t));
  for (std::size_t i = from; i < event.extras.size(); ++i) {
    const auto& extra = event.extras[i];
    bytes += sizeof extra + extra.media.size() * sizeof(MediaReference);
    for (const auto& text : extra.strings) bytes += sizeof text + text.size();
  }
  return bytes;
}

// Returns the memory of the store itself, without its blocks.
std::size_t own_bytes_of(const BlockStored& event) {
  const std::size_t salt_bytes = event.cache_salt ? event.cache_salt->size() : 0;
  return kBytesPerEvent + salt_bytes + (event.lora_name ? event.lora_name->size() : 0);
}

// Keeps the first `count` blocks only.
void cut_off(BlockStored& event, std::size_t count) {
  event.hashes.resize(count);
  event.tokens.resize(count * event.block_size);
  if (!event.extras.empty()) event.extras.resize(count);
}

}  // namespace

std::size_t WaitingStores::keep(BlockStored event) {
  const auto bytes = own_bytes_of(event) + bytes_of(event, 0);
  if (bytes > limits_.bytes_max) return event.hashes.size();
  const auto number = next_++;
  children_.insert({.parent = *event.parent, .number = number});
  for (std::size_t i = 0; i < event.hashes.size(); ++i) {
    blocks_.insert({.hash = event.hashes[i], .tier = event.tier, .number = number, .place = i});
  }
  bytes_ += bytes;
  events_.emplace(number, std::move(event));
  std::size_t fallen = 0;
  // Drops the oldest stores: an engine that never announces parents must not fill the memory.
  while (events_.size() > limits_.events_max || bytes_ > limits_.bytes_max) {
    fallen += remove(events_.begin()->first).hashes.size();
  }
  return fallen;
}

std::vector<BlockStored> WaitingStores::take(EngineHash parent) {
  std::vector<BlockStored> taken;
  // Searches again after each removal, because remove() erases the child that the iterator points
  // to.
  for (auto child = children_.lower_bound({.parent = parent});
       child != children_.end() && child->parent == parent;
       child = children_.lower_bound({.parent = parent})) {
    taken.push_back(remove(child->number));
  }
  return taken;
}

std::size_t WaitingStores::cancel(EngineHash hash, std::optional<operations::Tier> tier) {
  std::size_t cancelled = 0;
  const WaitingBlock any{.hash = hash, .tier = tier};
  for (auto first = blocks_.lower_bound(any);
       first != blocks_.end() && first->hash == hash && first->tier == tier;
       first = blocks_.lower_bound(any)) {
    const auto [number, place] = std::pair(first->number, first->place);
    auto& event = events_.find(number)->second;
    cancelled += event.hashes.size() - place;
    // No block is left, so the store itself goes too.
    if (place == 0) {
      remove(number);
      continue;
    }
    bytes_ -= bytes_of(event, place);
    unlist_blocks(event, number, place);
    cut_off(event, place);
  }
  return cancelled;
}

void WaitingStores::clear() {
  events_.clear();
  children_.clear();
  blocks_.clear();
  bytes_ = 0;
}

BlockStored WaitingStores::remove(Number number) {
  auto entry = events_.find(number);
  auto event = std::move(entry->second);
  events_.erase(entry);
  bytes_ -= own_bytes_of(event) + bytes_of(event, 0);
  children_.erase({.parent = *event.parent, .number = number});
  unlist_blocks(event, number, 0);
  return event;
}

void WaitingStores::unlist_blocks(const BlockStored& event, Number number, std::size_t from) {
  for (auto i = from; i < event.hashes.size(); ++i) {
    blocks_.erase({.hash = event.hashes[i], .tier = event.tier, .number = number, .place = i});
  }
}

}  // namespace sightline::events
