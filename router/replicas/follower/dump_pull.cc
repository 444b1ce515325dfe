// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/follower/dump_pull.h"

#include <algorithm>
#include <utility>

#include "router/replicas/frames/codec.h"

namespace sightline::follower {

namespace {

// Stores only: a dump says what is held, and the ends of it are compared as a set.
bool is_dump(const std::vector<operations::Operation>& operations, std::size_t bytes_max) {
  std::size_t bytes = 0;
  for (const auto& operation : operations) {
    if (!std::holds_alternative<operations::Store>(operation)) return false;
    bytes += frames::encoded_bytes(operation);
  }
  return bytes <= bytes_max;
}

}  // namespace

void DumpPull::begin(const frames::Offer& offer, Instant now) {
  end();
  offer_ = offer;
  heard_at_ = now;
}

void DumpPull::end() {
  offer_.reset();
  given_ = 0;
  asked_ = 0;
  open_.clear();
  waiting_.clear();
  sum_ = {};
}

std::optional<Drop> DumpPull::hear(frames::Chunk chunk, Instant now) {
  if (!is_on() || chunk.dump != offer_->dump) return Drop::OtherDump;
  const auto open = open_.find(chunk.chunk);
  if (open == open_.end()) return Drop::Repeated;
  if (!is_dump(chunk.operations, options_.chunk_bytes_max)) return Drop::Malformed;
  open_.erase(open);
  heard_at_ = now;
  waiting_.emplace(chunk.chunk, std::move(chunk.operations));
  return std::nullopt;
}

std::optional<std::vector<operations::Operation>> DumpPull::next() {
  const auto found = waiting_.find(given_);
  if (found == waiting_.end()) return std::nullopt;
  std::vector<operations::Operation> operations = std::move(found->second);
  waiting_.erase(found);
  ++given_;
  for (const auto& operation : operations) sum_.add(operation);
  return operations;
}

void DumpPull::ask(Instant now, Rng& rng, FollowerStatistics& statistics,
                   std::vector<frames::Body>& asks) {
  if (!is_on()) return;
  for (auto& [chunk, retry] : open_) {
    if (now < retry.due()) continue;
    retry.asked(now, rng);
    ++statistics.chunk_asks;
    ++statistics.chunks_asked_again;
    asks.push_back(frames::ChunkAsk{.reader = reader_, .dump = offer_->dump, .chunks = {chunk}});
  }
  frames::ChunkAsk first{.reader = reader_, .dump = offer_->dump, .chunks = {}};
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
