// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/events/waiting_stores.h"

#include <algorithm>
#include <utility>

namespace sightline::events {

namespace {

constexpr std::size_t kBytesPerEvent = 512;  // with its entries in the tables
constexpr std::size_t kBytesPerHash = 64;    // likewise

std::size_t bytes_of(const BlockStored& event) {
  std::size_t bytes = kBytesPerEvent + event.hashes.size() * kBytesPerHash +
                      event.tokens.size() * sizeof(std::int64_t) +
                      event.extras.size() * sizeof(BlockExtra);
  for (const auto& extra : event.extras) {
    bytes += extra.media.size() * sizeof(MediaReference);
    for (const auto& text : extra.strings) bytes += sizeof text + text.size();
  }
  return bytes;
}

void unlist(std::unordered_multimap<EngineHash, std::uint64_t>& list, EngineHash hash,
            std::uint64_t number) {
  const auto [begin, end] = list.equal_range(hash);
  const auto entry =
      std::find_if(begin, end, [number](const auto& item) { return item.second == number; });
  if (entry != end) list.erase(entry);
}

// Leaves the first `count` blocks.
void cut_off(BlockStored& event, std::size_t count) {
  event.hashes.resize(count);
  event.tokens.resize(count * event.block_size);
  if (!event.extras.empty()) event.extras.resize(count);
}

}  // namespace

std::size_t WaitingStores::keep(BlockStored event) {
  const auto number = next_++;
  by_parent_.emplace(*event.parent, number);
  for (const auto hash : event.hashes) by_block_.emplace(hash, number);
  bytes_ += bytes_of(event);
  events_.emplace(number, std::move(event));
  std::size_t fallen = 0;
  while (events_.size() > limits_.events_max || bytes_ > limits_.bytes_max) {
    fallen += remove(events_.begin()->first).hashes.size();
  }
  return fallen;
}

std::vector<BlockStored> WaitingStores::take(EngineHash parent) {
  std::vector<Number> numbers;
  const auto [begin, end] = by_parent_.equal_range(parent);
  for (auto entry = begin; entry != end; ++entry) numbers.push_back(entry->second);
  std::sort(numbers.begin(), numbers.end());
  std::vector<BlockStored> taken;
  for (const auto number : numbers) taken.push_back(remove(number));
  return taken;
}

std::size_t WaitingStores::cancel(EngineHash block, std::optional<index::Tier> tier) {
  std::vector<Number> numbers;
  const auto [begin, end] = by_block_.equal_range(block);
  for (auto entry = begin; entry != end; ++entry) numbers.push_back(entry->second);
  std::size_t cancelled = 0;
  for (const auto number : numbers) {
    const auto entry = events_.find(number);
    if (entry == events_.end() || entry->second.tier != tier) continue;
    auto& event = entry->second;
    const auto place = std::find(event.hashes.begin(), event.hashes.end(), block);
    if (place == event.hashes.end()) continue;
    const auto left = static_cast<std::size_t>(place - event.hashes.begin());
    cancelled += event.hashes.size() - left;
    if (left == 0) {
      remove(number);
      continue;
    }
    bytes_ -= bytes_of(event);
    unlist_blocks(event, number, left);
    cut_off(event, left);
    bytes_ += bytes_of(event);
  }
  return cancelled;
}

void WaitingStores::clear() {
  events_.clear();
  by_parent_.clear();
  by_block_.clear();
  bytes_ = 0;
}

BlockStored WaitingStores::remove(Number number) {
  auto entry = events_.find(number);
  auto event = std::move(entry->second);
  events_.erase(entry);
  bytes_ -= bytes_of(event);
  unlist(by_parent_, *event.parent, number);
  unlist_blocks(event, number, 0);
  return event;
}

void WaitingStores::unlist_blocks(const BlockStored& event, Number number, std::size_t from) {
  for (auto i = from; i < event.hashes.size(); ++i) unlist(by_block_, event.hashes[i], number);
}

}  // namespace sightline::events
