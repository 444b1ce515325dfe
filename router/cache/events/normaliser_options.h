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

#include "router/cache/content/adapters.h"
#include "router/cache/events/waiting_stores.h"
#include "router/cache/operations/operation.h"
#include "router/cache/wire/event_format.h"

namespace sightline::events {

// Blocks of one rank whose hashes are remembered, indexed or not; about 330 MB when full, and 150
// more where the engine tells no offsets of media (vLLM before 0.19) and all end within a picture.
inline constexpr std::size_t kHandlesMax = 2'000'000;
// What one of them takes: about so much, measured with one copy each.
inline constexpr std::size_t kHandleBytes = 166;

struct NormaliserOptions {
  CacheId id;                                 // its number in this process
  operations::CacheName cache;                // in the epoch to begin with
  const wire::EventFormat* format = nullptr;  // of its engine; not null
  std::string model;  // goes into Scope::model; the same text as for requests
  // Tokens per block as the operator configured them; nothing: what the events say is taken.
  std::optional<std::uint32_t> block_size_configured = std::nullopt;
  // Placeholder tokens of the model's image, video and audio items. A block that contains one but
  // names no item has unknown content.
  std::vector<TokenId> media_tokens = {};
  // Those of them of which each item is one run: see content::read_bare_identifiers.
  std::vector<TokenId> run_tokens = {};
  // Token ids of the model are below this; 0: any 32 bits. Sentinels of media are above it.
  TokenId vocabulary_size = 0;
  contract::Copies copies = contract::Copies::RefCount;
  std::size_t handles_max = kHandlesMax;
  // For those of all ranks together, kHandleBytes each; outlives the state. None: no bound.
  ByteBudget* handle_bytes = nullptr;
  // The data-parallel rank that its batches must state; nothing: whatever they state is taken, as
  // an engine that is alone at its address may count itself among others.
  std::optional<std::int64_t> rank = std::nullopt;
  // What is announced under an adapter's name earlier than this says has unknown content.
  content::AdapterMeanings adapters = {};
  // Not to be known to the engine: see EngineHashing.
  std::uint64_t hash_seed = 0;
  WaitingStores::Limits waiting = {};
};

// Counts since the state was made; a reset keeps them.
struct NormaliserStatistics {
  std::uint64_t events = 0;
  std::uint64_t blocks_stored = 0;        // index operations, after copies are counted
  std::uint64_t blocks_removed = 0;       // likewise
  std::uint64_t copies_added = 0;         // blocks announced again
  std::uint64_t reports_repeated = 0;     // announced again without being a new copy
  std::uint64_t unknown_parent = 0;       // blocks dropped: no room to wait for their parent
  std::uint64_t waited = 0;               // blocks taken when their parent came
  std::uint64_t unknown_content = 0;      // blocks not indexed: media, LoRA or embeds unclear
  std::uint64_t unknown_field = 0;        // stores with a field this build does not know
  std::uint64_t unknown_length = 0;       // blocks dropped: tokens do not fit the hashes
  std::uint64_t unknown_placeholder = 0;  // offload tier events for blocks never announced
  std::uint64_t unknown_removal = 0;      // removals of blocks not held
  std::uint64_t groups_refused = 0;       // stores of a cache group beyond the limits
  std::uint64_t ignored_group = 0;        // events of cache groups that hold no prefix
  std::uint64_t ignored_medium = 0;       // events of media or localities that are not ours
  std::uint64_t ignored_type = 0;         // event types this build does not know
  std::uint64_t ignored_block_size = 0;   // events after the block sizes disagreed
  std::uint64_t malformed = 0;            // broken events in sound batches
  std::uint64_t conflicts = 0;            // one engine hash, two contents: block withdrawn
  std::uint64_t handles_refused = 0;      // blocks not taken: handles_max
  std::uint64_t cleared = 0;              // AllBlocksCleared
};

}  // namespace sightline::events
