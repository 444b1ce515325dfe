// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/result.h"
#include "common/base/rng.h"

#include "router/cache/content/announced_content.h"
#include "router/cache/operations/operation.h"

// What engines announce about their prefix caches, after decoding and before normalisation.
namespace sightline::events {

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

// Limits on one payload; far above what engines send.
inline constexpr std::size_t kPayloadBytesMax = 64U << 20U;
inline constexpr std::size_t kNestingMax = 8;
inline constexpr std::size_t kEventsPerBatchMax = 1U << 16U;
inline constexpr std::size_t kTokensPerEventMax = 1U << 22U;
// Of all events together. A value takes a byte of the payload and up to 56 bytes of memory: these
// keep a batch below 300 MB, whatever its bytes say.
inline constexpr std::size_t kBlocksPerBatchMax = 1U << 20U;
inline constexpr std::size_t kTokensPerBatchMax = 1U << 23U;
inline constexpr std::size_t kExtrasPerBatchMax = 1U << 20U;
inline constexpr std::size_t kMediaPerBlockMax = 1U << 12U;
inline constexpr std::size_t kTextBytesMax = 4096;  // identifiers, salts, LoRA names

// Decodes the payload of one message of a KV event publisher (msgpack). The format is told from
// the bytes, never from a version: events as arrays (vLLM 0.9 to 0.23, SGLang) and as maps (vLLM
// from 0.24, keys in any order), hashes as integers or bytes, every shape of extra_keys up to
// vLLM 0.32. Further array elements are ignored, but for a map of named fields (SGLang).
//
// Named fields of a store that this build does not know: what is empty (nil, arrays of that) is
// ignored. Any other is noted, as it may mean what nobody has thought of; and where its name says
// that it may name the content (salt, adapter, media, namespace and the like), the content is
// unclear. The rest is ignored: engines add fields for attribution, and a store without a name for
// its content is the same store.
// Errors: Corrupt (not a batch at all), TooLarge, both blamed on the worker. A single broken
// event in a sound batch becomes a MalformedEvent.
Result<EventBatch> decode_vllm_batch(ByteView payload);

}  // namespace sightline::events
