// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "router/replicas/follower/follower.h"
#include "router/replicas/frames/stream_message.h"

namespace sightline::test {

// A cache that applies operations, with room for this many blocks on each tier.
class PlainCache : public operations::OperationSink, public follower::HeldBlocks {
 public:
  explicit PlainCache(std::size_t blocks_max = SIZE_MAX) : blocks_max_(blocks_max) {}

  void take(const operations::CacheName& cache, const operations::Operation& operation) override {
    name = cache;
    apply(operation);
  }
  void apply(const operations::Operation& operation) {
    if (const auto* store = std::get_if<operations::Store>(&operation)) {
      for (const auto key : store->keys) add(store->tier, key);
    } else if (const auto* remove = std::get_if<operations::Remove>(&operation)) {
      for (const auto key : remove->keys) {
        if (of(remove->tier).erase(key.value) > 0) digest_.of(remove->tier).remove(key);
      }
    } else {
      ++clears;
      blocks = {};
      digest_ = {};
      refused_ = 0;
    }
  }
  [[nodiscard]] operations::CacheDigest digest() const override { return digest_; }
  [[nodiscard]] std::uint64_t refused() const override { return refused_; }
  [[nodiscard]] std::optional<std::uint64_t> engine_blocks() const override { return room; }
  [[nodiscard]] bool is_part_of(const PlainCache& whole) const {
    for (std::size_t t = 0; t < blocks.size(); ++t) {
      const auto& all = whole.blocks[t];
      if (!std::includes(all.begin(), all.end(), blocks[t].begin(), blocks[t].end())) return false;
    }
    return true;
  }
  void make_room() { blocks_max_ = SIZE_MAX; }
  std::set<std::uint64_t>& of(operations::Tier tier) {
    return blocks[static_cast<std::size_t>(tier)];
  }

  std::array<std::set<std::uint64_t>, operations::kTierCount> blocks;
  std::optional<std::uint64_t> room;  // of its engine
  operations::CacheName name;
  std::uint64_t clears = 0;

 private:
  void add(operations::Tier tier, keys::BlockKey key) {
    auto& held = of(tier);
    if (held.contains(key.value)) return;
    if (held.size() >= blocks_max_) {
      ++refused_;
      return;
    }
    held.insert(key.value);
    digest_.of(tier).add(key);
  }

  std::size_t blocks_max_;
  operations::CacheDigest digest_;
  std::uint64_t refused_ = 0;
};

// The agent's end without limits on time or memory, but for the frames that it can send again.
class PlainAgent {
 public:
  PlainAgent(std::string name, std::uint64_t number, std::uint64_t epoch)
      : instance{std::move(name), number}, epoch_(epoch) {}

  // The frame of the next position.
  frames::Frame publish(std::vector<operations::Operation> operations, bool with_beat) {
    for (const auto& operation : operations) cache.apply(operation);
    frames::Frame frame{.instance = instance.number,
                        .epoch = epoch_,
                        .seq = ++seq_,
                        .operations = std::move(operations),
                        .beat = {}};
    if (with_beat) frame.beat = beat();
    ring_.push_back(frame);
    while (ring_.size() > ring_max) ring_.pop_front();
    return frame;
  }
  // Continuity is lost: a held block may have other content.
  void begin(std::uint64_t epoch) {
    epoch_ = epoch;
    seq_ = 0;
    ring_.clear();
    dumps_.clear();
  }

  std::vector<frames::Body> hear(const frames::Body& ask) {
    if (const auto* question = std::get_if<frames::StreamQuestion>(&ask))
      return {answer(*question)};
    if (const auto* range = std::get_if<frames::RangeAsk>(&ask)) return again(*range);
    if (const auto* dump = std::get_if<frames::DumpAsk>(&ask)) return {offer(*dump)};
    if (const auto* chunks = std::get_if<frames::ChunkAsk>(&ask)) return these(*chunks);
    return {};
  }

  [[nodiscard]] frames::Beat beat() const {
    frames::Beat beat;
    beat.digest = cache.digest();
    beat.facts.missing = {false, false, false};
    beat.hearing = hearing;
    beat.trouble = hearing ? "" : "it does not hear its engine";
    return beat;
  }
  void forget_dumps() { dumps_.clear(); }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] std::uint64_t seq() const { return seq_; }

  frames::Instance instance;
  PlainCache cache;
  bool hearing = true;
  bool proved = true;
  std::size_t ring_max = 1'000;
  std::size_t blocks_per_chunk = 4;
  std::optional<std::chrono::milliseconds> caught_up_ago;

 private:
  struct Dump {
    frames::Offer offer;
    std::vector<std::vector<operations::Operation>> chunks;
  };

  frames::StreamAnswer answer(const frames::StreamQuestion& question) {
    frames::StreamAnswer answer;
    answer.nonce = question.nonce;
    answer.agent = instance;
    if (proved) answer.epoch = epoch_;
    answer.seq = seq_;
    answer.state = beat();
    answer.caught_up_ago = caught_up_ago;
    return answer;
  }
  std::vector<frames::Body> again(const frames::RangeAsk& ask) {
    if (ask.epoch != epoch_ || !proved) {
      return {frames::NotAvailable{frames::NotAvailable::MissingPart::Epoch, ask.epoch}};
    }
    if (ring_.empty() || ask.from < ring_.front().seq) {
      return {frames::NotAvailable{frames::NotAvailable::MissingPart::Range, ask.epoch}};
    }
    std::vector<frames::Body> frames;
    for (const auto& frame : ring_) {
      if (frame.seq >= ask.from && frame.seq <= ask.to) frames.emplace_back(frame);
    }
    return frames;
  }
  frames::Body offer(const frames::DumpAsk& ask) {
    if (ask.epoch != epoch_ || !proved)
      return frames::NotAvailable{frames::NotAvailable::MissingPart::Epoch, ask.epoch};
    Dump dump;
    frames::Checksum sum;
    for (std::size_t t = 0; t < operations::kTierCount; ++t) {
      for (const auto block : cache.blocks[t]) {
        if (dump.chunks.empty() || dump.chunks.back().size() >= blocks_per_chunk) {
          dump.chunks.emplace_back();
        }
        dump.chunks.back().push_back(operations::Store{
            .tier = static_cast<operations::Tier>(t), .parent = {}, .keys = {{block}}});
        sum.add(dump.chunks.back().back());
      }
    }
    dump.offer = {.dump = epoch_ + ++dumps_made_,
                  .epoch = epoch_,
                  .seq = seq_,
                  .chunks = static_cast<std::uint32_t>(dump.chunks.size()),
                  .checksum = sum.value(),
                  .digest = cache.digest()};
    const frames::Offer offer = dump.offer;
    dumps_[offer.dump] = std::move(dump);
    if (dumps_.size() > 6) dumps_.erase(dumps_.begin());
    return offer;
  }
  std::vector<frames::Body> these(const frames::ChunkAsk& ask) {
    const auto dump = dumps_.find(ask.dump);
    if (dump == dumps_.end())
      return {frames::NotAvailable{frames::NotAvailable::MissingPart::Dump, ask.dump}};
    std::vector<frames::Body> chunks;
    for (const auto chunk : ask.chunks) {
      chunks.emplace_back(frames::DumpChunk{ask.dump, chunk, dump->second.chunks.at(chunk)});
    }
    return chunks;
  }

  std::uint64_t epoch_;
  std::uint64_t seq_ = 0;
  std::uint64_t dumps_made_ = 0;
  std::deque<frames::Frame> ring_;
  std::map<std::uint64_t, Dump> dumps_;
};

inline operations::Operation store(std::vector<std::uint64_t> blocks) {
  operations::Store store;
  for (const auto block : blocks) store.keys.push_back({block});
  return store;
}

inline operations::Operation removal(std::uint64_t block) {
  return operations::Remove{.tier = operations::Tier::Gpu, .keys = {{block}}};
}

}  // namespace sightline::test
