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

// One prefix cache in one unbroken history, the same for all routers.
struct CacheName {
  std::string worker;       // its name in the configuration
  std::uint32_t rank = 0;   // data-parallel rank
  std::uint64_t epoch = 0;  // rises whenever what is held can no longer be proved: see Clear

  bool operator==(const CacheName&) const = default;
};

// These blocks are held on the tier from now on. They follow each other in one prompt: keys[0]
// comes after `parent`, keys[i] after keys[i-1]. None was held there before.
struct Store {
  Tier tier = Tier::Gpu;
  std::optional<keys::BlockKey> parent;  // nothing: keys[0] is the first block of a prompt
  std::vector<keys::BlockKey> keys;      // at least one

  bool operator==(const Store&) const = default;
};

// These blocks are no longer held on the tier. All of them were, in any order.
struct Remove {
  Tier tier = Tier::Gpu;
  std::vector<keys::BlockKey> keys;  // at least one

  bool operator==(const Remove&) const = default;
};

// Nothing is held on any tier: the cache was emptied, or what it holds can no longer be proved.
// The cache's epoch before it is over; what follows is of the next.
struct Clear {
  // The blocks that were held, in any order, some perhaps twice: spares who gives memory back the
  // walk over all that is held by anybody. Not to be sent to another process.
  std::vector<keys::BlockKey> held;

  bool operator==(const Clear&) const = default;
};

using Operation = std::variant<Store, Remove, Clear>;

// Takes the operations of caches, those of one cache in their order.
class OperationSink {
 public:
  virtual ~OperationSink() = default;

  // A Clear comes under the epoch that it ends.
  virtual void take(const CacheName& cache, const Operation& operation) = 0;
};

}  // namespace sightline::operations
