// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstdint>

namespace sightline::fleet {

// Whole prompt blocks that a worker computed, by its answers. Its KV events must announce each of
// them, unless it holds the block already. So a worker that computes and announces nothing is
// noticed.
// Thread safety: all methods from any thread.
class ComputedBlocks {
 public:
  // Adds the blocks of one answer.
  void add(std::uint64_t blocks) { blocks_.fetch_add(blocks, std::memory_order_relaxed); }
  // All blocks since construction.
  [[nodiscard]] std::uint64_t total() const { return blocks_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> blocks_ = 0;
};

}  // namespace sightline::fleet
