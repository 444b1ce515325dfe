// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "router/cache/index/prefix_index.h"

namespace sightline::index {

// A set for each engine and tier, walked block by block. It defines what an index answers, and
// whose blocks a full index drops.
class NaiveIndex : public IndexReader, public IndexStatistics {
 public:
  explicit NaiveIndex(std::size_t blocks_max = std::numeric_limits<std::size_t>::max())
      : blocks_max_(blocks_max) {}

  void set_bound(CacheId cache, std::uint64_t engine_blocks) { bounds_[cache] = engine_blocks; }
  [[nodiscard]] Overlaps match(std::span<const keys::BlockKey> prompt) const override {
    Overlaps overlaps;
    for (const auto& [cache, tiers] : engines_) {
      const auto gpu = run(prompt, 0, tiers, 1);
      const auto cpu = run(prompt, gpu, tiers, 2);
      const auto storage = run(prompt, cpu, tiers, 3);
      if (storage > 0) overlaps.caches.push_back({cache, gpu, cpu - gpu, storage - cpu});
    }
    return overlaps;
  }
  void store(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks) {
    if (blocks.empty()) return;
    auto& tiers = engines_[cache];
    bool may_make_room = true;
    for (const auto block : blocks) {
      while (!is_known(block) && blocks_total() >= blocks_max_ && may_make_room) {
        may_make_room = make_room_for(cache);
      }
      const bool has_no_room = !is_known(block) && blocks_total() >= blocks_max_;
      const bool is_held_to_bound = limits_[cache].gave_way && beyond(cache, tier, 1) > 0;
      if (has_no_room || is_held_to_bound) {
        ++limits_[cache].refused;
      } else {
        tiers[static_cast<std::size_t>(tier)].insert(block);
      }
    }
  }
  void remove(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks) {
    const auto found = engines_.find(cache);
    if (found == engines_.end()) return;
    for (const auto block : blocks) found->second[static_cast<std::size_t>(tier)].erase(block);
  }
  void drop(CacheId cache) {
    engines_.erase(cache);
    limits_.erase(cache);
  }
  [[nodiscard]] std::uint64_t blocks(CacheId cache) const override {
    return held(cache, Tier::Gpu).size();
  }
  [[nodiscard]] std::uint64_t blocks_total() const override {
    std::set<keys::BlockKey> all;
    for (const auto& [cache, tiers] : engines_) {
      for (const auto& tier : tiers) all.insert(tier.begin(), tier.end());
    }
    return all.size();
  }
  [[nodiscard]] operations::CacheDigest digest(CacheId cache) const override {
    operations::CacheDigest digest;
    for (const auto tier : {Tier::Gpu, Tier::Cpu, Tier::Storage}) {
      for (const auto block : held(cache, tier)) digest.of(tier).add(block);
    }
    return digest;
  }
  [[nodiscard]] std::uint64_t refused_total() const override { return 0; }
  [[nodiscard]] std::uint64_t refused(CacheId cache) const override {
    return limits(cache).refused;
  }
  [[nodiscard]] CacheLimits limits(CacheId cache) const override {
    const auto found = limits_.find(cache);
    CacheLimits limits = found == limits_.end() ? CacheLimits{} : found->second;
    const auto bound = bounds_.find(cache);
    if (bound != bounds_.end()) limits.engine_blocks = bound->second;
    return limits;
  }
  [[nodiscard]] bool has_room() const override {
    return blocks_total() + std::max<std::size_t>(blocks_max_ / 16, 1) <= blocks_max_;
  }
  [[nodiscard]] std::vector<keys::BlockKey> held(CacheId cache, Tier tier) const override {
    const auto found = engines_.find(cache);
    if (found == engines_.end()) return {};
    const auto& blocks = found->second[static_cast<std::size_t>(tier)];
    return {blocks.begin(), blocks.end()};
  }

 private:
  using Tiers = std::array<std::set<keys::BlockKey>, operations::kTierCount>;

  // End of the run from `from` on of blocks held on one of the first `tier_count` tiers.
  static std::uint32_t run(std::span<const keys::BlockKey> prompt, std::uint32_t from,
                           const Tiers& tiers, std::size_t tier_count) {
    for (; from < prompt.size(); ++from) {
      bool held = false;
      for (std::size_t t = 0; t < tier_count; ++t) held |= tiers[t].contains(prompt[from]);
      if (!held) break;
    }
    return from;
  }

  [[nodiscard]] bool is_known(keys::BlockKey block) const {
    for (const auto& [cache, tiers] : engines_) {
      for (const auto& tier : tiers) {
        if (tier.contains(block)) return true;
      }
    }
    return false;
  }
  [[nodiscard]] std::uint64_t held(CacheId cache) const {
    std::uint64_t all = 0;
    for (const auto& tier : engines_.at(cache)) all += tier.size();
    return all;
  }
  // How far the engine would be above its limits with this many more blocks on the tier. On the GPU
  // the limit is its capacity, elsewhere an equal share.
  [[nodiscard]] std::uint64_t beyond(CacheId cache, Tier tier, std::uint64_t more) const {
    const std::uint64_t share = blocks_max_ / engines_.size();
    const auto bound = bounds_.find(cache);
    std::uint64_t gpu = blocks(cache);
    std::uint64_t elsewhere = held(cache) - gpu;
    (tier == Tier::Gpu ? gpu : elsewhere) += more;
    const std::uint64_t room = bound == bounds_.end() ? share : bound->second;
    return (gpu > room ? gpu - room : 0) + (elsewhere > share ? elsewhere - share : 0);
  }
  // The engine farthest above its limit, by more than an eighth of the rest, loses all blocks.
  bool make_room_for(CacheId wanting) {
    if (beyond(wanting, Tier::Gpu, 0) > 0) return false;
    CacheId farthest;
    std::uint64_t most = 0;
    for (const auto& [cache, tiers] : engines_) {
      const std::uint64_t by = beyond(cache, Tier::Gpu, 0);
      if (by > most && by > (held(cache) - by) / 8) {
        farthest = cache;
        most = by;
      }
    }
    if (most == 0) return false;
    limits_[farthest] = {.engine_blocks = {}, .refused = held(farthest), .gave_way = true};
    engines_.at(farthest) = {};
    return true;
  }

  std::map<CacheId, Tiers> engines_;
  const std::size_t blocks_max_;
  std::map<CacheId, std::uint64_t> bounds_;
  std::map<CacheId, CacheLimits> limits_;
};

}  // namespace sightline::index
