// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstdint>

namespace sightline::fleet {

// Whole blocks of prompts that a worker computed, as its answers tell. Each is to be announced by
// its KV events, unless it holds the block already.
// Thread safety: all methods from any thread.
class ComputedBlocks {
 public:
  void add(std::uint64_t blocks) { blocks_.fetch_add(blocks, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t total() const { return blocks_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> blocks_ = 0;
};

}  // namespace sightline::fleet
