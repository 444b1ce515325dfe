// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

namespace sightline::events {

// Why the index may lack blocks that an engine holds. All false: it has every block the engine
// announced since its cache was last empty.
struct Lacks {
  bool forgotten = true;         // joined late, events lost, or a parent never announced
  bool unknown_content = false;  // blocks that cannot be named exactly
  bool no_room = false;          // more blocks than are remembered
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
