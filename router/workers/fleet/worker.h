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

#include "router/cache/content/adapter_meanings.h"
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

// docs/routing.md explains the states.
enum class WorkerState : std::uint8_t {
  // Never answered: no requests.
  Starting,
  // Routed with precise overlap.
  Ready,
  // Routed without precise overlap, the reason says why.
  Unverified,
  // Routed without overlap: a contradiction, see the reason.
  Excluded,
  // Finishes its requests, gets no new ones.
  Draining,
  // Requests failed: new ones only as the last resort.
  Suspect,
  // Does not answer: no requests.
  Down,
};

inline constexpr std::array kWorkerStates = {
    WorkerState::Starting, WorkerState::Ready,   WorkerState::Unverified, WorkerState::Excluded,
    WorkerState::Draining, WorkerState::Suspect, WorkerState::Down};

// The state as /v1/workers and metrics name it: "starting", "ready", …
std::string_view name_of(WorkerState state);

// Whether a worker in this state may take new requests.
constexpr bool may_take_requests(WorkerState state) {
  return state == WorkerState::Ready || state == WorkerState::Unverified ||
         state == WorkerState::Excluded;
}

// The level at which a worker's change to this state is logged.
LogLevel level_of(WorkerState state);

// A data-parallel rank of a worker: an engine core with its own cache, queue and load. A request is
// sent to one rank.
struct Rank {
  std::uint32_t number = 0;   // as the engine numbers it
  std::uint32_t running = 0;  // requests in its batches, at the last reading
  std::uint32_t waiting = 0;  // requests in its queue
  double kv_usage = 0;        // 0..1
  // The blocks of its cache, and the tokens of each, by its metrics. 0: not reported.
  std::uint32_t gpu_blocks = 0;
  std::uint32_t gpu_block_size = 0;
  // Absent: its events are not known.
  std::optional<Feed> feed;
  // Its booked work. All snapshots of the rank share the cell, which is never null.
  std::shared_ptr<LoadCell> load = std::make_shared<LoadCell>();

  // The blocks that its cache has room for, 0: not known. It is not known if the blocks of its
  // events have another size than those of its metrics.
  [[nodiscard]] std::uint64_t cache_blocks() const {
    return feed && feed->block_size.tokens == gpu_block_size ? gpu_blocks : 0;
  }

  bool operator==(const Rank&) const = default;
};

using family::RankLoad;
using family::ServedModel;
using family::ServerLoad;

// One worker at one moment. Immutable. The load is that of the last reading.
struct Worker {
  // As the operator wrote it.
  contract::WorkerSpec spec;
  // Behind the URL, by number, at least one.
  std::vector<Rank> ranks{1};
  BlockSize block_size;
  std::vector<ServedModel> models;         // empty: not known
  content::Adapters adapters;              // reported so far
  std::optional<family::Version> version;  // absent: not reported
  std::uint32_t max_model_len = 0;         // tokens, of the base model, 0: not known

  std::uint32_t running = 0;  // requests in the worker's batches, all ranks
  std::uint32_t waiting = 0;  // requests in its queue, all ranks
  double kv_usage = 0;        // 0..1, the fullest rank
  bool was_asked = false;     // for its state, with any result
  WorkerState state = WorkerState::Starting;
  // One line: why it is not ready, which fact is not known, or what to repair.
  std::string reason;
  // Of the snapshot with the last change of state or identity.
  std::uint64_t revision = 0;
  // Raised by the requests that it answers. All snapshots of the worker share it. Never null.
  std::shared_ptr<LifeSign> life = std::make_shared<LifeSign>();
  // Shared in the same way: when its load was last read, and what its answers show about its speed.
  std::shared_ptr<ReadingTime> load_read = std::make_shared<ReadingTime>();
  std::shared_ptr<PrefillPace> pace = std::make_shared<PrefillPace>();
  std::shared_ptr<ComputedBlocks> computed = std::make_shared<ComputedBlocks>();

  bool operator==(const Worker&) const = default;

  // May take new requests.
  [[nodiscard]] bool is_routable() const { return may_take_requests(state); }
  // Its index entries count.
  [[nodiscard]] bool is_precise() const { return state == WorkerState::Ready; }
  // The index entries of this rank count.
  [[nodiscard]] bool is_precise(const Rank& rank) const {
    return is_precise() && rank.feed && rank.feed->unverified.empty();
  }
  // False if the worker reports a shorter context.
  [[nodiscard]] bool takes_prompt_of(std::uint64_t tokens) const {
    return max_model_len == 0 || tokens <= max_model_len;
  }
  // True if a request must name the rank.
  [[nodiscard]] bool has_several_ranks() const { return ranks.size() > 1; }
  // Returns null if no rank has this cache.
  [[nodiscard]] const Rank* find(CacheId cache) const;
  // The feed of the first rank that has one. Null: no rank's events are known.
  [[nodiscard]] const Feed* first_feed() const;
  // True also while its models are not known.
  [[nodiscard]] bool serves(std::string_view model) const;
};

// A worker of which only the configuration is known.
Worker view_of(const contract::WorkerSpec& spec);

// The ranks of the view with their event endpoints.
std::vector<FoundRank> found_ranks(const Worker& view);

// These apply a report of the worker to the next published view: the block size of its events, of
// which `latest` is the newest, and its models.
void take_block_size(Worker& view, const AnnouncedBlockSize& latest);
void set_models(Worker& view, const std::vector<ServedModel>& models);

// What the fleet has observed of a worker. Together with the view it decides the state.
struct Observations {
  bool was_alive = false;                 // a probe was answered.
  bool is_alive = false;                  // no connection was refused since.
  bool is_silent = false;                 // too many probes failed in a row.
  bool is_suspect = false;                // a failure, its back-off is not over.
  bool is_slow = false;                   // silent or suspect by timeouts alone.
  bool stays_routed = false;              // while only slow: too many others are.
  std::string failure = "not asked yet";  // of the last failure.
  std::string refused_calls;              // which calls it answers 401, and a remedy.
  std::string unknown_events;             // why no rank has a feed.
  std::string rank_conflict;              // why its ranks are uncertain, or empty.
  std::string name_conflict;              // which name it lists otherwise than most, or empty.
  std::string wedged;                     // why it counts as stuck, or empty.
  std::string unannounced;                // why its silence is wrong, or empty.
  bool is_asleep = false;                 // by its own report
};

// Applies a reading of the worker's load. A single rank gets the load of the whole worker, under
// any number.
void set_load(Worker& view, const ServerLoad& load);

// Whether both are the same worker at the same place. `drain` and the key may differ.
bool is_same_worker(contract::WorkerSpec a, const contract::WorkerSpec& b);

// Why no block of the worker counts, independent of the others. Empty: they can count. Pure.
std::string conflict_of(const Worker& worker, const Observations& seen);

// The result of judge().
struct WorkerStatus {
  WorkerState state = WorkerState::Starting;
  std::string reason;
};

// Decides the state of a worker, with the sentence that explains it. common_block_size is in
// tokens, of most workers, 0 if it is not known. Pure.
WorkerStatus judge(const Worker& worker, const Observations& seen, std::uint32_t common_block_size);

}  // namespace sightline::fleet
