// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/rng.h"

#include "router/cache/content/announced_content.h"
#include "router/cache/operations/operation.h"

// What engines announce about their prefix caches. These values are decoded, but the normaliser has
// not interpreted them.
namespace sightline::wire {

// An engine's own name for a block. It is a handle and has a meaning for one engine core only. An
// integer keeps its value, and `high` is 1 for a non-negative one and 2 for a negative one. A byte
// string becomes its XXH3-128. So neither form is taken for the other.
struct EngineHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend auto operator<=>(const EngineHash&, const EngineHash&) = default;
};

// Mixes an EngineHash with a seed that the engine does not know. An engine can therefore not choose
// hashes that meet in one bucket of a hash table.
class EngineHashing {
 public:
  explicit EngineHashing(std::uint64_t seed) {
    Rng rng(seed);
    low_ = rng.next();
    high_ = rng.next();
  }
  std::size_t operator()(const EngineHash& hash) const noexcept {
    __extension__ using Wide = unsigned __int128;
    const auto product = Wide{hash.low ^ low_} * (hash.high ^ high_);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
  }

 private:
  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

// kv_cache_spec_kind of vLLM 0.22 and later. Only Full and Mla hold whole prefixes. Unstated: the
// event has no kind.
enum class SpecKind : std::uint8_t { Unstated, Full, Mla, Other };

using content::BlockExtra;
using content::MediaReference;

// The engine stored a chain of blocks on one tier.
struct BlockStored : content::AnnouncedContent {
  // In the order of the prompt: each block follows the one before.
  std::vector<EngineHash> hashes;
  // The block before the first one. Empty for a prompt's first block.
  std::optional<EngineHash> parent;
  // Empty for a medium that the router does not know.
  std::optional<operations::Tier> tier = operations::Tier::Gpu;
  // The cache group (vLLM 0.20 and later).
  std::optional<std::int64_t> group;
  // The kind of the cache group.
  SpecKind kind = SpecKind::Unstated;
  // The locality is REMOTE: this engine itself does not hold the blocks.
  bool remote = false;
  // A field that this build does not know is not empty.
  bool unknown_field = false;
  // The tokens came as pairs of neighbours (SGLang with EAGLE). `tokens` holds the first of each
  // pair. The hashes also depend on the second token of the last pair, which is not in the event.
  bool paired = false;
};

// The engine removed one copy of each of these blocks from a tier.
struct BlockRemoved {
  std::vector<EngineHash> hashes;
  // How many copies of each block are left after the removal, if the engine reports it. This field
  // was proposed for vLLM in 2026. Empty, or one value per hash.
  std::vector<std::uint32_t> copies_left;
  std::optional<operations::Tier> tier = operations::Tier::Gpu;
  std::optional<std::int64_t> group;
  bool remote = false;
};

// The whole cache of the publisher is empty.
struct AllBlocksCleared {};

// An event of a type that this build does not know. It changes nothing.
struct UnknownEvent {};

// An event of a known type with broken content. A broken store only loses claims, which is safe.
// Any other broken event may hide a removal.
struct MalformedEvent {
  // True for a store, false for any other type.
  bool store = false;
  // Names the broken part.
  std::string reason;
};

using KvEvent =
    std::variant<BlockStored, BlockRemoved, AllBlocksCleared, UnknownEvent, MalformedEvent>;

// One message of an event publisher. The events are in the order in which the engine sent them.
struct EventBatch {
  // Unix time in seconds at which the engine made the batch, by the engine's clock.
  double timestamp_s = 0;
  // The data-parallel rank. Empty if the batch does not name one.
  std::optional<std::int64_t> rank;
  std::vector<KvEvent> events;
};

}  // namespace sightline::wire
