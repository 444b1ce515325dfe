// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/ids.h"
#include "common/contract/worker_spec.h"

#include "router/cache/content/adapter_meanings.h"
#include "router/cache/events/waiting_stores.h"
#include "router/cache/operations/operation.h"
#include "router/cache/wire/event_format.h"

namespace sightline::events {

// How many blocks of one rank the normaliser remembers by their hashes, indexed or not. If full,
// they take about 330 MB. They take 150 MB more if the engine states no offsets of media (vLLM
// before 0.19) and each block ends within a picture.
inline constexpr std::size_t kHandlesMax = 2'000'000;
// The approximate memory of one of them, measured with one copy each.
inline constexpr std::size_t kHandleBytes = 166;

// Settings of the normaliser for one rank.
struct NormaliserOptions {
  // The rank's number in this process.
  CacheId id;
  // The name of the cache, with the epoch to begin with.
  operations::CacheName cache;
  // The event format of its engine. Not null.
  const wire::EventFormat* format = nullptr;
  // Becomes KeyScope::model. The text must be the same as for requests.
  std::string model;
  // Tokens per block in the operator's configuration. Empty: the normaliser takes the size of the
  // events.
  std::optional<std::uint32_t> block_size_configured = std::nullopt;
  // Placeholder tokens of the model's image, video and audio items. A block that contains one of
  // them but names no item has unknown content.
  std::vector<TokenId> media_tokens = {};
  // The placeholder tokens of kinds of which each item is one run. See content::MediaTokens.
  std::vector<TokenId> run_tokens = {};
  // Token ids of the model are below this. 0 allows any 32 bits. Values for media are above it.
  TokenId vocabulary_size = 0;
  contract::Copies copies = contract::Copies::RefCount;
  std::size_t handles_max = kHandlesMax;
  // The memory budget for the handles of all ranks together, kHandleBytes for each. It outlives the
  // normaliser. Null: no limit.
  ByteBudget* handle_bytes = nullptr;
  // The data-parallel rank that the engine's batches must state. Empty: the feed accepts any rank,
  // because an engine alone at its address may count itself among others.
  std::optional<std::int64_t> rank = std::nullopt;
  // Blocks that are announced under an adapter's name earlier than this allows have unknown
  // content.
  content::AdapterMeanings adapters = {};
  // Must be unknown to the engine. See wire::EngineHashing.
  std::uint64_t hash_seed = 0;
  WaitingStores::Limits waiting = {};
};

// Counts since the normaliser was made. reset() keeps them.
struct NormaliserStatistics {
  std::uint64_t events = 0;
  // Blocks in Store operations, after copies are counted.
  std::uint64_t blocks_stored = 0;
  // Blocks in Remove operations, after copies are counted.
  std::uint64_t blocks_removed = 0;
  // Blocks announced again as one more copy.
  std::uint64_t copies_added = 0;
  // Blocks announced again that are no new copy.
  std::uint64_t reports_repeated = 0;
  // Blocks dropped because no room was left to wait for their parent.
  std::uint64_t unknown_parent = 0;
  // Blocks applied after they waited for their parent.
  std::uint64_t waited = 0;
  // Blocks not indexed because their media, LoRA adapter or embeds are not certain.
  std::uint64_t unknown_content = 0;
  // Stores with a field that this build does not know.
  std::uint64_t unknown_field = 0;
  // Blocks dropped because their tokens do not fit the hashes.
  std::uint64_t unknown_length = 0;
  // Events of offloading tiers for blocks that were never announced.
  std::uint64_t unknown_placeholder = 0;
  // Removals of blocks that the engine does not hold.
  std::uint64_t unknown_removal = 0;
  // Stores of a cache group beyond the limits.
  std::uint64_t groups_refused = 0;
  // Events of cache groups that hold no whole prefixes.
  std::uint64_t ignored_group = 0;
  // Events of unknown media, or of localities other than this engine.
  std::uint64_t ignored_medium = 0;
  // Events of types that this build does not know.
  std::uint64_t ignored_type = 0;
  // Events after the block sizes contradicted each other.
  std::uint64_t ignored_block_size = 0;
  // Broken events in sound batches.
  std::uint64_t malformed = 0;
  // One engine hash with two contents. The block is withdrawn.
  std::uint64_t conflicts = 0;
  // Blocks not taken because the limit of handles was reached.
  std::uint64_t handles_refused = 0;
  // AllBlocksCleared events.
  std::uint64_t cleared = 0;
};

}  // namespace sightline::events
