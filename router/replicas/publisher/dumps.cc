// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/publisher/dumps.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sightline::publisher {

Dumps::Dumps(frames::StreamName stream, DumpOptions options, std::function<std::uint64_t()> draw)
    : stream_(std::move(stream)), options_(options), draw_(std::move(draw)) {}

Dumps::DumpRequestResult Dumps::ask(const std::string& reader, std::uint64_t since, Instant now) {
  // A reader applies the frames from offer.seq + 1 on after the dump. The agent must
  // still have this frame.
  const bool is_of_use = !made_.empty() && made_.back().offer.seq + 1 >= since;
  if (!is_making() && is_of_use &&
      (now - made_.back().made_at <= options_.shared_for || would_rob(now))) {
    made_.back().used_at = now;
    return DumpRequestResult::Given;
  }
  if (waiting_.size() >= options_.readers_max && !waiting_.contains(reader))
    return DumpRequestResult::Refused;
  waiting_.insert(reader);
  return is_making() ? DumpRequestResult::Waiting : DumpRequestResult::ToBegin;
}

void Dumps::begin(HeldBlocks& held, std::uint64_t epoch, std::uint64_t seq) {
  held.begin_snapshot();
  const std::uint64_t id = draw_();
  frames::Offer offer;
  offer.dump = id;
  offer.epoch = epoch;
  offer.seq = seq;
  offer.digest = held.digest();
  // The digest is taken now, with the snapshot: it belongs to this position, not to the end of the
  // work.
  making_.emplace(Making{.offer = offer, .writer = ChunkWriter(stream_, id, options_.chunk_bytes)});
}

Dumps::Stepped Dumps::step(HeldBlocks& held, Instant now) {
  // Without this limit, a busy cache would grow the copies without bound.
  if (held.kept_for_snapshot() > options_.changed_max) {
    held.end_snapshot();
    making_.reset();
    return Stepped::ToBegin;
  }
  for (std::size_t left = options_.blocks_per_step; left > 0; --left) {
    const auto block = held.next_of_snapshot();
    if (block) {
      making_->writer.add(*block);
      continue;
    }
    held.end_snapshot();
    making_->writer.finish();
    Made made{.offer = making_->offer,
              .chunks = making_->writer.take_chunks(),
              .made_at = now,
              .used_at = now};
    made.offer.chunks = static_cast<std::uint32_t>(made.chunks.size());
    made.offer.checksum = making_->writer.checksum();
    for (const std::string& chunk : made.chunks) made.bytes += chunk.capacity();
    making_.reset();
    made_.push_back(std::move(made));
    make_room();
    return Stepped::Made;
  }
  return Stepped::More;
}

const std::vector<std::string>* Dumps::chunks(std::uint64_t dump, Instant now) {
  const auto found = std::find_if(made_.begin(), made_.end(),
                                  [&](const Made& one) { return one.offer.dump == dump; });
  if (found == made_.end()) return nullptr;
  found->used_at = now;
  return &found->chunks;
}

void Dumps::expire(Instant now) {
  std::erase_if(made_, [&](const Made& one) { return now - one.used_at >= options_.kept_for; });
}

void Dumps::drop_all(HeldBlocks& held) {
  if (making_) held.end_snapshot();
  making_.reset();
  made_.clear();
}

// Never drops the newest: readers are about to get its offer.
void Dumps::make_room() {
  while (made_.size() > 1 && has_too_much()) {
    made_.erase(std::min_element(
        made_.begin(), std::prev(made_.end()),
        [](const Made& one, const Made& other) { return one.used_at < other.used_at; }));
  }
}

bool Dumps::would_rob(Instant now) const {
  // Another dump will probably have the size of the newest one.
  const bool is_room =
      made_.size() < options_.kept_max && bytes() + made_.back().bytes <= options_.kept_bytes_max;
  return !is_room && std::all_of(made_.begin(), made_.end(), [&](const Made& one) {
    // A dump that was used after it was made has a reader.
    return one.used_at > one.made_at && now - one.used_at <= options_.pulled_for;
  });
}

bool Dumps::has_too_much() const {
  return made_.size() > options_.kept_max || bytes() > options_.kept_bytes_max;
}

std::size_t Dumps::bytes() const {
  std::size_t bytes = 0;
  for (const Made& one : made_) bytes += one.bytes;
  return bytes;
}

std::optional<Instant> Dumps::deadline() const {
  std::optional<Instant> first;
  for (const Made& one : made_) {
    const Instant at = one.used_at + options_.kept_for;
    if (!first || at < *first) first = at;
  }
  return first;
}

}  // namespace sightline::publisher
