// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "router/cache/keys/block_key.h"

// The operations on a cache that an engine's KV events mean. They are values without references.
namespace sightline::operations {

// Where an engine keeps a block, fastest first. The value is an index below kTierCount.
enum class Tier : std::uint8_t { Gpu, Cpu, Storage };
inline constexpr std::uint32_t kTierCount = 3;

// Names one rank's cache in one unbroken history. The name means the same in every process.
struct CacheName {
  // The worker's name in the configuration.
  std::string worker;
  // The data-parallel rank.
  std::uint32_t rank = 0;
  // Counted by the reader of the engine's events. The reader begins another epoch when it cannot
  // prove that it received all events since the last Clear.
  std::uint64_t epoch = 0;

  bool operator==(const CacheName&) const = default;
};

// The tier holds these blocks from this operation on. They follow each other in one prompt: keys[0]
// comes after `parent`, keys[i] after keys[i-1]. The tier need not hold the parent. Storing a block
// that the tier already holds changes nothing.
struct Store {
  Tier tier = Tier::Gpu;
  // Empty if keys[0] is the first block of a prompt.
  std::optional<keys::BlockKey> parent;
  // At least one.
  std::vector<keys::BlockKey> keys;

  bool operator==(const Store&) const = default;
};

// The tier no longer holds these blocks. Their order has no meaning. Removing a block that the tier
// does not hold changes nothing.
struct Remove {
  Tier tier = Tier::Gpu;
  // At least one.
  std::vector<keys::BlockKey> keys;

  bool operator==(const Remove&) const = default;
};

// No tier holds any block: the engine emptied the cache, or its content can no longer be proved.
struct Clear {
  // All blocks that the cache held, in any order, perhaps with others. With them, a sink need not
  // search all caches for the blocks to free. Empty if unknown. It is never sent to another
  // process.
  std::optional<std::vector<keys::BlockKey>> held;

  bool operator==(const Clear&) const = default;
};

using Operation = std::variant<Store, Remove, Clear>;

// Receives the operations of caches. The operations of one cache arrive in their order.
class OperationSink {
 public:
  virtual ~OperationSink() = default;

  // Applies one operation to a cache. A Clear that ends an epoch comes under the name of that
  // epoch.
  virtual void take(const CacheName& cache, const Operation& operation) = 0;
};

}  // namespace sightline::operations
