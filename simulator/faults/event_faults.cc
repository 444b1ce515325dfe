// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "simulator/faults/event_faults.h"

#include <algorithm>
#include <utility>

namespace sightline::faults {
namespace {

using core::BlockHash;
using core::BlockStored;
using core::ExtraKeys;

// 0xc1 is the only byte that MessagePack never uses.
const Bytes kUndecodable(16, 0xc1);

// Returns the lowest factor above 1, or 1 for a block size of 1.
std::uint32_t parts_of(std::uint32_t block_size) {
  for (std::uint32_t factor = 2; factor < block_size; ++factor) {
    if (block_size % factor == 0) return factor;
  }
  return std::max(block_size, 1U);
}

// Returns the keys of a part that begins at token `begin` of its block. The event does not contain
// the length of an item. A part therefore has all items of the block that begin before the part's
// end.
ExtraKeys keys_of_part(const ExtraKeys& block, std::int64_t begin, std::int64_t part_size) {
  ExtraKeys keys;
  keys.lora_name = block.lora_name;
  for (const auto& media : block.media) {
    if (media.offset < begin + part_size)
      keys.media.push_back({media.identifier, media.offset - begin});
  }
  if (begin == 0) keys.cache_salt = block.cache_salt;
  return keys;
}

// The last part keeps the block's hash, because child blocks name it as their parent.
BlockHash hash_of_part(BlockHash block, std::uint32_t part, std::uint32_t parts) {
  if (part + 1 < parts) block.back() = static_cast<std::uint8_t>(block.back() + part + 1);
  return block;
}

}  // namespace

void tell_smaller_blocks(BlockStored& event) {
  const std::uint32_t parts = parts_of(event.block_size);
  const std::uint32_t size = event.block_size / parts;
  std::vector<BlockHash> hashes;
  std::vector<ExtraKeys> extra_keys;
  for (std::size_t block = 0; block < event.hashes.size(); ++block) {
    for (std::uint32_t part = 0; part < parts; ++part) {
      hashes.push_back(hash_of_part(event.hashes[block], part, parts));
      extra_keys.push_back(keys_of_part(event.extra_keys[block], std::int64_t{part} * size, size));
    }
  }
  event.hashes = std::move(hashes);
  event.extra_keys = std::move(extra_keys);
  event.block_size = size;
}

EventFaults::EventFaults(asio::io_context& context, FaultPlan& plan, const Clock& clock)
    : plan_(plan), clock_(clock), timer_(context) {}

void EventFaults::distort(std::uint64_t sequence, std::vector<core::KvEvent>& events) {
  if (!wrong_block_size_ &&
      plan_.draw(FaultKind::WrongBlockSize, {.request = {}, .sequence = sequence})) {
    wrong_block_size_ = true;
  }
  if (!wrong_block_size_) return;
  std::vector<core::KvEvent> told;
  for (auto& event : events) {
    if (auto* stored = std::get_if<BlockStored>(&event)) {
      for (const BlockHash& hash : stored->hashes) {
        parts_told_.emplace(hash, parts_of(stored->block_size));
      }
      tell_smaller_blocks(*stored);
    } else if (const auto* removed = std::get_if<core::BlockRemoved>(&event)) {
      tell_other_parts(removed->hash, told);
    } else {
      // The event clears all blocks.
      parts_told_.clear();
    }
    told.push_back(std::move(event));
  }
  events = std::move(told);
}

void EventFaults::tell_other_parts(const BlockHash& gone, std::vector<core::KvEvent>& told) {
  const auto copy = parts_told_.find(gone);
  if (copy == parts_told_.end()) return;  // announced as one block
  const std::uint32_t parts = copy->second;
  parts_told_.erase(copy);
  for (std::uint32_t part = 0; part + 1 < parts; ++part) {
    told.emplace_back(core::BlockRemoved{hash_of_part(gone, part, parts)});
  }
}

// The order of the draws is part of the plan: equal seeds must give equal faults.
bool EventFaults::deliver(EventMessage& message, const Send& send) {
  send_ = send;
  const FaultTarget occasion{.request = {}, .sequence = message.sequence};
  if (plan_.draw(FaultKind::GarbageEvents, occasion)) {
    message.payload = std::make_shared<const Bytes>(kUndecodable);
  }
  const auto dropped = plan_.draw(FaultKind::Drop, occasion);
  if (dropped) return !dropped->lost;
  // Only one message is held at a time.
  if (!held_ && plan_.draw(FaultKind::Reorder, occasion)) {
    held_ = message;
    return true;
  }
  const auto delayed = plan_.draw(FaultKind::Delay, occasion);
  enqueue(message, delayed ? delayed->duration : Duration::zero());
  if (plan_.draw(FaultKind::Duplicate, occasion)) enqueue(message, Duration::zero());
  const auto held = std::exchange(held_, std::nullopt);
  if (held) enqueue(*held, Duration::zero());
  return true;
}

bool EventFaults::cuts_replay(std::uint64_t sequence) {
  return plan_.draw(FaultKind::CutReplay, {.request = {}, .sequence = sequence}).has_value();
}

void EventFaults::enqueue(const EventMessage& message, Duration delay) {
  // Without a queue the message is sent immediately, and no timer runs.
  if (queue_.empty() && delay == Duration::zero()) return send_now(message);
  Instant due = clock_.now() + delay;
  // A message must not pass an earlier one.
  if (!queue_.empty()) due = std::max(due, queue_.back().due);
  queue_.push_back({due, message});
  if (queue_.size() == 1) send_due();
}

void EventFaults::send_due() {
  while (!queue_.empty() && queue_.front().due <= clock_.now()) {
    send_now(queue_.front().message);
    queue_.pop_front();
  }
  if (queue_.empty()) return;
  timer_.expires_at(std::chrono::time_point_cast<std::chrono::steady_clock::duration>(
      queue_.front().due + std::chrono::microseconds(1)));
  timer_.async_wait([this, life = std::weak_ptr(life_), number = *life_](const auto&) {
    const auto now = life.lock();
    if (now && *now == number) send_due();
  });
}

void EventFaults::send_now(const EventMessage& message) {
  send_(message);
  delivered_ = std::max(delivered_.value_or(0), message.sequence);
}

void EventFaults::flush() {
  // A timer callback may still be queued. It finds another number and does nothing.
  ++*life_;
  for (const DelayedMessage& waiting : std::exchange(queue_, {})) send_now(waiting.message);
  const auto held = std::exchange(held_, std::nullopt);
  if (held) send_now(*held);
}

void EventFaults::forget() {
  ++*life_;
  queue_.clear();
  held_.reset();
  delivered_.reset();
  wrong_block_size_ = false;
  parts_told_.clear();
}

}  // namespace sightline::faults
