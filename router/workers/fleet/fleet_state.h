// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/published.h"

#include "router/workers/fleet/effects.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::fleet {

// The fleet's data, and each change of them. Public methods of Fleet lock, change, publish and then
// act on the effects, in this order.
class Fleet::State {
 public:
  State(Options with, FleetListeners told, runtime::Metrics& counts, const Clock& time)
      : options(std::move(with)), listeners(std::move(told)), metrics(counts), clock(time) {}

  const Options options;
  const FleetListeners listeners;
  runtime::Metrics& metrics;
  const Clock& clock;
  // Outside of the mutex: it has locks of its own.
  LoadBook book{options.load};
  Published<FleetSnapshot> snapshot{std::make_shared<const FleetSnapshot>()};
  // Without one, report_success() needs no lock.
  std::atomic<std::size_t> failing_workers = 0;

  // Guards all that follows. Held for memory work only.
  Mutex mutex;
  std::vector<FleetMember> members SL_GUARDED_BY(mutex);
  std::uint64_t revision SL_GUARDED_BY(mutex) = 0;
  std::uint32_t next_cache SL_GUARDED_BY(mutex) = 0;
  std::function<void()> probe_sooner SL_GUARDED_BY(mutex);
  // Whether a published worker or the list has changed since publish().
  bool is_changed SL_GUARDED_BY(mutex) = true;
  std::uint64_t served_revision SL_GUARDED_BY(mutex) = 0;  // of the snapshots
  SlowShare share SL_GUARDED_BY(mutex);
  bool slow_stay_routed SL_GUARDED_BY(mutex) = false;
  // Tokens, 0: not known.
  std::uint32_t block_size_of_most SL_GUARDED_BY(mutex) = 0;
  // The size in force in tokens, 0: not known for certain.
  std::uint32_t known_block_size SL_GUARDED_BY(mutex) = 0;
  std::shared_ptr<const AdapterNames> adapter_names SL_GUARDED_BY(mutex) =
      std::make_shared<const AdapterNames>();  // of the snapshots
  NameMeanings meanings SL_GUARDED_BY(mutex){options.base_names};
  bool is_name_changed SL_GUARDED_BY(mutex) = false;  // since settle_renamed()

  FleetMember* find(std::string_view name) SL_REQUIRES(mutex);
  // Returns the member for which a probe was made. Null if it was replaced in the meantime.
  FleetMember* find(const contract::WorkerSpec& spec) SL_REQUIRES(mutex);
  // Ends the reading of all its ranks.
  static void drop_feeds(FleetMember& member, Effects& effects);
  // Sets or clears the contradiction about ranks. Counts a new one.
  void learn_rank_conflict(FleetMember& member, const std::string& conflict) const;
  // Sets the member's ranks. The feeds continue if all of them are as before. Otherwise all begin
  // again. Ranks that stay keep their booked work.
  void set_ranks(FleetMember& member, const std::vector<FoundRank>& found, Effects& effects)
      SL_REQUIRES(mutex);
  // Decides the member's state, and publishes it if it or any part of `view` changed.
  void settle(FleetMember& member, Effects& effects) SL_REQUIRES(mutex);
  // Compares block sizes. Decides again about members for which those of the others have changed.
  void compare_block_sizes(Effects& effects) SL_REQUIRES(mutex);
  // Call it when the share of slow workers may have changed.
  void keep_slow(Effects& effects) SL_REQUIRES(mutex);
  void settle_one(FleetMember& member, Effects& effects) SL_REQUIRES(mutex);
  // Counts the names that the member lists, if they or `counts` have changed.
  void count_names(FleetMember& member, bool counts) SL_REQUIRES(mutex);
  // Call it when a name may have changed its meaning.
  void settle_renamed(Effects& effects) SL_REQUIRES(mutex);
  void set_state_metric(const FleetMember& member, WorkerState now) const;
  // Publishes a snapshot, if something has changed.
  void publish() SL_REQUIRES(mutex);
  // Logs, and calls the listeners.
  void act(const Effects& effects) const SL_EXCLUDES(mutex);
  void replace_members(const std::vector<contract::WorkerSpec>& workers, Effects& effects)
      SL_REQUIRES(mutex);
  // Call it after `failed_requests` has changed from `before`.
  void count_failing(const FleetMember& member, std::uint32_t before) SL_REQUIRES(mutex);
  void forget_failures(FleetMember& member) SL_REQUIRES(mutex);
  // When the last event of the worker arrived.
  [[nodiscard]] Instant last_event(std::string_view name) const SL_EXCLUDES(mutex);
  void probe_answered(FleetMember& member, const Probe& probe, Effects& effects) SL_REQUIRES(mutex);
  // Changes a rank with a feed. `change` returns whether it changed something.
  void change(CacheId cache, const auto& change) {
    Effects effects;
    {
      const MutexLock lock(mutex);
      for (FleetMember& member : members) {
        for (Rank& rank : member.view.ranks) {
          if (!rank.feed || rank.feed->cache != cache || !change(member, rank, effects)) continue;
          settle(member, effects);
          publish();
        }
      }
    }
    act(effects);
  }
  // `latest` is the new size of one of its feeds, which has it already.
  void take_block_size(FleetMember& member, const AnnouncedBlockSize& latest,
                       Effects& effects) const;
  // Logs the state of one of several ranks. The worker's own line says nothing about it while
  // another rank is ready.
  static void tell_rank(const FleetMember& member, const Rank& rank, Effects& effects);
};

}  // namespace sightline::fleet
