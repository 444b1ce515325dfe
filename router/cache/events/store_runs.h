// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "router/cache/operations/operation.h"

namespace sightline::events {

// The blocks that an event adds to a cache, with such as follow each other in a prompt in one
// operation.
// Thread safety: none. Where add() finds no memory (std::bad_alloc), what was added before stays.
class StoreRuns {
 public:
  // A block behind its parent; no parent: the first of a prompt.
  void add(operations::Tier tier, std::optional<keys::BlockKey> parent, keys::BlockKey key) {
    if (!runs_.empty() && runs_.back().tier == tier && parent == runs_.back().keys.back()) {
      runs_.back().keys.push_back(key);
    } else {
      runs_.push_back({.tier = tier, .parent = parent, .keys = {key}});
    }
  }

  // What was added since the last call, in its order.
  [[nodiscard]] std::vector<operations::Store> take() { return std::exchange(runs_, {}); }

 private:
  std::vector<operations::Store> runs_;  // each with a key
};

}  // namespace sightline::events
