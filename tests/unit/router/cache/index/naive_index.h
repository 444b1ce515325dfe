// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "router/cache/index/prefix_index.h"

namespace sightline::index {

// A set per engine and tier, walked block by block: the definition of what an index answers.
class NaiveIndex : public IndexReader, public IndexStatistics {
 public:
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
    for (const auto block : blocks) engines_[cache][static_cast<std::size_t>(tier)].insert(block);
  }
  void remove(CacheId cache, Tier tier, std::span<const keys::BlockKey> blocks) {
    for (const auto block : blocks) engines_[cache][static_cast<std::size_t>(tier)].erase(block);
  }
  void drop(CacheId cache) { engines_.erase(cache); }
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
  [[nodiscard]] std::uint64_t refused(CacheId /*engine*/) const override { return 0; }
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

  std::map<CacheId, Tiers> engines_;
};

}  // namespace sightline::index
