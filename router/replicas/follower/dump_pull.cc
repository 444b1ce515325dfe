// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/follower/dump_pull.h"

#include <algorithm>
#include <utility>

#include "router/replicas/frames/stream_codec.h"

namespace sightline::follower {

namespace {

// Far more blocks than a tier holds. Sums of these counts do not overflow.
constexpr std::uint64_t kTierBlocksMax = 1ULL << 40U;

// Returns the size of the operations as encoded. Returns nothing if one of them is not a Store: a
// dump lists the held blocks, so it has no removals.
std::optional<std::size_t> encoded_bytes_of(const std::vector<operations::Operation>& operations) {
  std::size_t bytes = 0;
  for (const auto& operation : operations) {
    if (!std::holds_alternative<operations::Store>(operation)) return std::nullopt;
    bytes += frames::encoded_bytes(operation);
  }
  return bytes;
}

std::uint64_t blocks_in(const std::vector<operations::Operation>& stores) {
  std::uint64_t blocks = 0;
  for (const auto& operation : stores) blocks += std::get<operations::Store>(operation).keys.size();
  return blocks;
}

}  // namespace

void DumpPull::begin(const frames::Offer& offer, Instant now) {
  end();
  offer_ = offer;
  blocks_offered_ = 0;
  // The counts come from the network. Each is limited before it is added.
  for (const auto& tier : offer.digest.tiers) {
    blocks_offered_ += std::min(tier.count, kTierBlocksMax);
  }
  heard_at_ = now;
}

void DumpPull::end() {
  offer_.reset();
  blocks_ = 0;
  given_ = 0;
  asked_ = 0;
  open_.clear();
  waiting_.clear();
  held_.clear();
  sum_ = {};
}

std::optional<Drop> DumpPull::hear(frames::DumpChunk chunk, Instant now) {
  if (!is_on() || chunk.dump != offer_->dump) return Drop::OtherDump;
  const auto open = open_.find(chunk.chunk);
  // It was not requested, or it has come before.
  if (open == open_.end()) return Drop::Repeated;
  const auto encoded_bytes = encoded_bytes_of(chunk.operations);
  // A larger chunk is no chunk of an agent. It is not kept.
  if (!encoded_bytes || *encoded_bytes > options_.chunk_bytes_max) return Drop::Malformed;
  const std::uint64_t blocks = blocks_in(chunk.operations);
  blocks_ += blocks;
  // The limit is checked before the chunk is kept. So an endless dump takes no memory.
  if (is_too_long()) return Drop::TooMuch;
  // About the bytes in memory.
  const std::size_t bytes =
      *encoded_bytes + chunk.operations.size() * sizeof(operations::Operation);
  if (!held_.add(bytes)) {
    blocks_ -= blocks;
    return Drop::NoRoom;  // ask() requests it again
  }
  open_.erase(open);
  heard_at_ = now;
  waiting_.emplace(chunk.chunk, WaitingChunk{std::move(chunk.operations), bytes});
  return std::nullopt;
}

std::optional<std::vector<operations::Operation>> DumpPull::next() {
  const auto found = waiting_.find(given_);
  if (found == waiting_.end()) return std::nullopt;
  std::vector<operations::Operation> operations = std::move(found->second.operations);
  held_.remove(found->second.bytes);
  waiting_.erase(found);
  ++given_;
  for (const auto& operation : operations) sum_.add(operation);
  return operations;
}

void DumpPull::ask(Instant now, Rng& rng, FollowerStatistics& statistics,
                   std::vector<frames::Body>& asks) {
  if (!is_on()) return;
  // Lost chunks first: the chunks behind them wait in memory.
  for (auto& [chunk, retry] : open_) {
    if (now < retry.due()) continue;
    retry.asked(now, rng);
    ++statistics.chunk_asks;
    ++statistics.chunks_asked_again;
    asks.push_back(frames::ChunkAsk{.reader = reader_, .dump = offer_->dump, .chunks = {chunk}});
  }
  frames::ChunkAsk first{.reader = reader_, .dump = offer_->dump, .chunks = {}};
  // The window limits the chunks in memory. They are counted from the first one that next() has not
  // returned.
  while (asked_ < offer_->chunks && asked_ - given_ < options_.chunk_window) {
    Retry retry(options_.chunk_retry_min, options_.chunk_retry_max);
    retry.start(now);
    retry.asked(now, rng);
    open_.emplace(asked_, retry);
    first.chunks.push_back(asked_++);
  }
  if (first.chunks.empty()) return;
  ++statistics.chunk_asks;
  asks.push_back(std::move(first));
}

Instant DumpPull::due() const {
  if (!is_on()) return Instant::max();
  Instant due = heard_at_ + options_.dump_silent_after;
  if (asked_ < offer_->chunks && asked_ - given_ < options_.chunk_window) {
    due = {};
  }
  for (const auto& [chunk, retry] : open_) {
    due = std::min(due, retry.due());
  }
  return due;
}

}  // namespace sightline::follower
