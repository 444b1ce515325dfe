// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "router/cache/keys/block_key.h"

// What the events of an engine mean for its cache, as values that anybody may take.
namespace sightline::operations {

// Where an engine keeps a block, fastest first.
enum class Tier : std::uint8_t { Gpu, Cpu, Storage };
inline constexpr std::uint32_t kTierCount = 3;

// One prefix cache in one unbroken history. Means the same in every process.
struct CacheName {
  std::string worker;      // its name in the configuration
  std::uint32_t rank = 0;  // data-parallel rank
  // Counted by whoever reads the engine's events: another one follows where it cannot be proved
  // that all since the last Clear was heard.
  std::uint64_t epoch = 0;

  bool operator==(const CacheName&) const = default;
};

// These blocks are held on the tier from now on. They follow each other in one prompt: keys[0]
// comes after `parent`, keys[i] after keys[i-1]. The parent need not be held there.
// Storing what is held changes nothing.
struct Store {
  Tier tier = Tier::Gpu;
  std::optional<keys::BlockKey> parent;  // nothing: keys[0] is the first block of a prompt
  std::vector<keys::BlockKey> keys;      // at least one

  bool operator==(const Store&) const = default;
};

// These blocks, in any order, are no longer held on the tier. Removing what is not held changes
// nothing.
struct Remove {
  Tier tier = Tier::Gpu;
  std::vector<keys::BlockKey> keys;  // at least one

  bool operator==(const Remove&) const = default;
};

// Nothing is held on any tier: the cache was emptied, or what it holds can no longer be proved.
struct Clear {
  // All blocks that were held, in any order, perhaps with others: spares who gives memory back the
  // walk over what all caches hold. Nothing: not known. Not to be sent to another process.
  std::optional<std::vector<keys::BlockKey>> held;

  bool operator==(const Clear&) const = default;
};

using Operation = std::variant<Store, Remove, Clear>;

// Takes the operations of caches, those of one cache in their order.
class OperationSink {
 public:
  virtual ~OperationSink() = default;

  // A Clear that ends an epoch comes under that epoch.
  virtual void take(const CacheName& cache, const Operation& operation) = 0;
};

}  // namespace sightline::operations
