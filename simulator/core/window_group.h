// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <vector>

#include "simulator/core/published_event.h"

namespace sightline::core {

// The cache group of a hybrid model's layers with a sliding window. These layers read only the last
// blocks. A prefix is therefore a hit if these blocks are held, even if earlier ones are gone. In
// vLLM this group shares its blocks with the other group. Here it has room of its own, and the
// block stored first is evicted first.
//
// Thread safety: one owner.
class WindowGroup {
 public:
  // With window_blocks = 0 the group does not exist. It has room for at least one window.
  WindowGroup(std::uint32_t window_blocks, std::size_t blocks_max)
      : window_blocks_(window_blocks),
        blocks_max_(std::max<std::size_t>(blocks_max, window_blocks)) {}

  // Returns how many of these leading blocks of a prompt are a hit here too. The other group holds
  // all of them.
  [[nodiscard]] std::size_t longest_hit(std::span<const BlockHash> blocks) const {
    if (window_blocks_ == 0) return blocks.size();
    std::size_t hit = 0;
    // Consecutive blocks held here, up to this one.
    std::size_t run = 0;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      run = places_.contains(blocks[i]) ? run + 1 : 0;
      if (run >= std::min(window_blocks_, i + 1)) hit = i + 1;
    }
    return hit;
  }

  // Stores blocks, and returns the blocks that it evicted for them.
  std::vector<BlockHash> keep(std::span<const BlockHash> blocks) {
    std::vector<BlockHash> gone;
    for (const BlockHash& block : blocks) {
      const auto found = places_.find(block);
      if (found != places_.end()) {
        // A second copy of the block replaces the first one.
        oldest_first_.erase(found->second);
        gone.push_back(block);
      }
      places_[block] = oldest_first_.insert(oldest_first_.end(), block);
      if (places_.size() <= blocks_max_) continue;
      gone.push_back(oldest_first_.front());
      places_.erase(oldest_first_.front());
      oldest_first_.pop_front();
    }
    return gone;
  }

  // Drops all blocks.
  void clear() {
    oldest_first_.clear();
    places_.clear();
  }

 private:
  const std::size_t window_blocks_;
  const std::size_t blocks_max_;
  std::list<BlockHash> oldest_first_;
  std::map<BlockHash, std::list<BlockHash>::iterator> places_;
};

}  // namespace sightline::core
