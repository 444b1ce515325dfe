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

// What engines announce about their prefix caches, after decoding and before normalisation.
namespace sightline::wire {

// An engine's own name for a block: a handle, meaningful for one engine core only. Integers keep
// their value (high = 1 non-negative, 2 negative), byte strings become their XXH3-128, so that
// neither form can stand for the other.
struct EngineHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend auto operator<=>(const EngineHash&, const EngineHash&) = default;
};

// Mixes an EngineHash with a seed that the engine does not know: hashes chosen to meet in one
// bucket of a hash table do not.
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

// kv_cache_spec_kind of vLLM 0.22 and later. Only Full and Mla hold whole prefixes.
enum class SpecKind : std::uint8_t { Unstated, Full, Mla, Other };

using content::BlockExtra;
using content::MediaReference;

struct BlockStored : content::AnnouncedContent {
  std::vector<EngineHash> hashes;  // chained, in order
  std::optional<EngineHash> parent;
  std::optional<operations::Tier> tier = operations::Tier::Gpu;  // nothing: a medium unknown to us
  std::optional<std::int64_t> group;  // cache group (vLLM 0.20 and later)
  SpecKind kind = SpecKind::Unstated;
  bool remote = false;         // locality REMOTE: not held by this engine itself
  bool unknown_field = false;  // a field unknown to this build is not empty
  // The tokens came as pairs of neighbours, of which these are the first ones (SGLang with EAGLE):
  // the second one of the last pair is part of what the hashes stand for, and not told here.
  bool paired = false;
};

struct BlockRemoved {
  std::vector<EngineHash> hashes;
  // Copies that are left of each block after it, where the engine tells (a field proposed for vLLM
  // in 2026): empty, or one per hash.
  std::vector<std::uint32_t> copies_left;
  std::optional<operations::Tier> tier = operations::Tier::Gpu;
  std::optional<std::int64_t> group;
  bool remote = false;
};

// The whole cache of the publisher is empty.
struct AllBlocksCleared {};

// A type that this build does not know; changes nothing.
struct UnknownEvent {};

// A known type with broken content. A broken store loses claims, which is safe; anything else
// broken may hide a removal.
struct MalformedEvent {
  bool store = false;
  std::string reason;
};

using KvEvent =
    std::variant<BlockStored, BlockRemoved, AllBlocksCleared, UnknownEvent, MalformedEvent>;

struct EventBatch {
  double timestamp_s = 0;  // unix time at which the engine made the batch
  std::optional<std::int64_t> rank;
  std::vector<KvEvent> events;
};

}  // namespace sightline::wire
