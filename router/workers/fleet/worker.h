// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/contract/worker_spec.h"

#include "router/cache/content/adapters.h"
#include "router/engine/family/server_facts.h"
#include "router/engine/family/version.h"
#include "router/workers/fleet/block_size.h"
#include "router/workers/fleet/computed_blocks.h"
#include "router/workers/fleet/feed.h"
#include "router/workers/fleet/life_sign.h"
#include "router/workers/fleet/load_book.h"
#include "router/workers/fleet/prefill_pace.h"
#include "router/workers/fleet/reading_time.h"

namespace sightline::fleet {

enum class WorkerState : std::uint8_t {
  Starting,    // never answered yet; no requests
  Ready,       // routed with precise overlap
  Unverified,  // routed, but without precise overlap: the reason says what is not known
  Excluded,    // routed without overlap: its events contradict its configuration
  Draining,    // finishes what runs, takes no new requests
  Suspect,     // requests failed; no new ones until a probe after a back-off succeeds
  Down,        // does not answer; no requests
};

inline constexpr std::array kWorkerStates = {
    WorkerState::Starting, WorkerState::Ready,   WorkerState::Unverified, WorkerState::Excluded,
    WorkerState::Draining, WorkerState::Suspect, WorkerState::Down};

// "starting", "ready", …: as in /v1/workers and metrics.
std::string_view name_of(WorkerState state);

// A worker in this state may take new requests.
constexpr bool may_take_requests(WorkerState state) {
  return state == WorkerState::Ready || state == WorkerState::Unverified ||
         state == WorkerState::Excluded;
}

// At which a worker's entry into the state is logged.
LogLevel level_of(WorkerState state);

// One data-parallel rank of a worker: an engine core with a cache, a queue and load of its own. A
// request is sent to a rank of a worker.
struct Rank {
  std::uint32_t number = 0;   // as the engine counts
  std::uint32_t running = 0;  // requests in its batches, at the last scrape
  std::uint32_t waiting = 0;  // requests in its queue
  double kv_usage = 0;        // 0..1
  // Blocks that its cache has and their tokens, as its metrics tell; 0: not told.
  std::uint32_t gpu_blocks = 0;
  std::uint32_t gpu_block_size = 0;
  std::optional<Feed> feed;  // nothing: where its events are is not known
  // Work booked on it: one cell for all snapshots of the rank, never null.
  std::shared_ptr<LoadCell> load = std::make_shared<LoadCell>();

  // Blocks that its cache has room for; 0: not known. Blocks of another size than those that its
  // events tell are another number of them.
  [[nodiscard]] std::uint64_t cache_blocks() const {
    return feed && feed->block_size.tokens == gpu_block_size ? gpu_blocks : 0;
  }

  bool operator==(const Rank&) const = default;
};

using family::RankLoad;
using family::ServedModel;
using family::ServerLoad;

// Immutable view of one worker. Load values are those of the last scrape.
struct Worker {
  contract::WorkerSpec spec;   // as the operator wrote it
  std::vector<Rank> ranks{1};  // behind the URL, by number; at least one
  BlockSize block_size;
  std::vector<ServedModel> models;         // empty: not known yet
  content::Adapters adapters;              // told so far
  std::optional<family::Version> version;  // nothing: the worker does not tell it
  std::uint32_t max_model_len = 0;         // tokens, of the base model; 0 unknown

  std::uint32_t running = 0;  // requests in the worker's batches, all ranks
  std::uint32_t waiting = 0;  // requests in its queue, all ranks
  double kv_usage = 0;        // 0..1, the fullest rank
  bool was_asked = false;     // for its state, with whatever answer
  WorkerState state = WorkerState::Starting;
  std::string reason;          // one line: why it is not ready, what is not known, or to be mended
  std::uint64_t revision = 0;  // of the snapshot in which state or identity last changed
  // Raised by the requests that it answers: one for all snapshots of the worker, never null.
  std::shared_ptr<LifeSign> life = std::make_shared<LifeSign>();
  // Likewise: when its load was read last, and what its answers tell of its speed.
  std::shared_ptr<ReadingTime> load_read = std::make_shared<ReadingTime>();
  std::shared_ptr<PrefillPace> pace = std::make_shared<PrefillPace>();
  std::shared_ptr<ComputedBlocks> computed = std::make_shared<ComputedBlocks>();

  bool operator==(const Worker&) const = default;

  // May take new requests.
  [[nodiscard]] bool is_routable() const { return may_take_requests(state); }
  // Its index entries may be believed.
  [[nodiscard]] bool is_precise() const { return state == WorkerState::Ready; }
  // Likewise of this rank of it.
  [[nodiscard]] bool is_precise(const Rank& rank) const {
    return is_precise() && rank.feed && rank.feed->unverified.empty();
  }
  // False where the worker tells that its context is shorter.
  [[nodiscard]] bool takes_prompt_of(std::uint64_t tokens) const {
    return max_model_len == 0 || tokens <= max_model_len;
  }
  // True if a request must say which rank is to answer it.
  [[nodiscard]] bool has_several_ranks() const { return ranks.size() > 1; }
  // Null: no rank of it has this cache.
  [[nodiscard]] const Rank* find(CacheId cache) const;
  // Of the first rank that has one; null: no rank's events are known.
  [[nodiscard]] const Feed* first_feed() const;
  // True also while its models are not known.
  [[nodiscard]] bool serves(std::string_view model) const;
};

// A worker of which nothing is known but its configuration.
Worker view_of(const contract::WorkerSpec& spec);

// Its ranks with where their events are, as they were found.
std::vector<FoundRank> found_ranks(const Worker& view);

// What a worker told, taken over into the view that is to be published next: block sizes that the
// events of its ranks tell, of which this is the latest; models.
void take_block_size(Worker& view, const AnnouncedBlockSize& latest);
void set_models(Worker& view, const std::vector<ServedModel>& models);

// What the fleet has seen of a worker: with its view, all that its state follows from.
struct Observations {
  bool was_alive = false;     // some probe was answered
  bool is_alive = false;      // and since then no connection was refused
  bool is_silent = false;     // probes failed too often in a row
  bool is_suspect = false;    // requests or the last probe failed, the back-off is not over
  bool is_slow = false;       // silent or suspect for timeouts alone
  bool stays_routed = false;  // while it is only slow: too many others are
  std::string failure = "not asked yet";  // of the last failed probe or request
  std::string refused_calls;              // what the worker answers 401, and the remedy
  std::string unknown_events;             // why no rank has a feed
  std::string rank_conflict;              // why its number of ranks is not sure, empty: it is
  std::string name_conflict;              // what name it lists otherwise than most, empty: none
  std::string wedged;                     // why it is taken to be stuck, empty: it is not
  std::string unannounced;                // why its silence is none, empty: it may be
  bool is_asleep = false;                 // it says so itself
};

// Takes over a reading of the worker's load. A single rank has the load of the whole worker,
// whatever its number.
void set_load(Worker& view, const ServerLoad& load);

// The same worker at the same place, perhaps with another wish to drain it, or another key.
bool is_same_worker(contract::WorkerSpec a, const contract::WorkerSpec& b);

// Why no block of the worker can be believed, whatever the others have; empty: they can. Pure.
std::string conflict_of(const Worker& worker, const Observations& seen);

struct WorkerStatus {
  WorkerState state = WorkerState::Starting;
  std::string reason;
};

// The state of a worker and the sentence that explains it; common_block_size: tokens, of most
// workers, 0: none is known. Pure.
WorkerStatus judge(const Worker& worker, const Observations& seen, std::uint32_t common_block_size);

}  // namespace sightline::fleet
