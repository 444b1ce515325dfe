// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "router/cache/operations/operation.h"

namespace sightline::events {

// Collects the blocks that an event adds to a cache. Blocks that follow each other in a prompt
// become one operation.
// Thread safety: one thread at a time. If add() gets no memory (std::bad_alloc), the blocks added
// before remain.
class StoreRuns {
 public:
  // Adds a block after its parent. Without a parent it is the first block of a prompt.
  void add(operations::Tier tier, std::optional<keys::BlockKey> parent, keys::BlockKey key) {
    if (!runs_.empty() && runs_.back().tier == tier && parent == runs_.back().keys.back()) {
      runs_.back().keys.push_back(key);
    } else {
      runs_.push_back({.tier = tier, .parent = parent, .keys = {key}});
    }
  }

  // Returns the operations for all blocks added since the last call, in their order.
  [[nodiscard]] std::vector<operations::Store> take() { return std::exchange(runs_, {}); }

 private:
  // Each has at least one key.
  // Each has at least one key. Empty after take().
  std::vector<operations::Store> runs_;
};

}  // namespace sightline::events
