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

// What the fleet keeps, and each change of it. Public methods of Fleet lock, change, publish and
// act on the effects, in this order.
class Fleet::State {
 public:
  State(Options with, FleetListeners told, runtime::Metrics& counts, const Clock& time)
      : options(std::move(with)), listeners(std::move(told)), metrics(counts), clock(time) {}

  const Options options;
  const FleetListeners listeners;
  runtime::Metrics& metrics;
  const Clock& clock;
  LoadBook book{options.load};
  Published<FleetSnapshot> snapshot{std::make_shared<const FleetSnapshot>()};
  std::atomic<std::size_t> failing_workers = 0;  // spares report_success the lock

  Mutex mutex;
  std::vector<Member> members SL_GUARDED_BY(mutex);
  std::uint64_t revision SL_GUARDED_BY(mutex) = 0;
  std::uint32_t next_cache SL_GUARDED_BY(mutex) = 0;
  std::function<void()> probe_sooner SL_GUARDED_BY(mutex);
  // A published worker, or the list, since publish().
  bool is_changed SL_GUARDED_BY(mutex) = true;
  std::uint64_t served_revision SL_GUARDED_BY(mutex) = 0;  // of the snapshots, see there
  SlowShare share SL_GUARDED_BY(mutex);
  bool slow_stay_routed SL_GUARDED_BY(mutex) = false;
  std::uint32_t block_size_of_most SL_GUARDED_BY(mutex) = 0;  // tokens, 0: none is known
  std::uint32_t known_block_size SL_GUARDED_BY(mutex) = 0;    // in force, 0: none is known for sure
  std::shared_ptr<const AdapterNames> adapter_names SL_GUARDED_BY(mutex) =
      std::make_shared<const AdapterNames>();  // of the snapshots
  NameMeanings meanings SL_GUARDED_BY(mutex){options.base_names};
  bool is_name_changed SL_GUARDED_BY(mutex) = false;  // since settle_renamed()

  Member* find(std::string_view name) SL_REQUIRES(mutex);
  // The member that a probe was taken for, unless it was replaced since.
  Member* find(const contract::WorkerSpec& spec) SL_REQUIRES(mutex);
  static void drop_feeds(Member& member, Effects& effects);
  void learn_rank_conflict(Member& member, const std::string& conflict) const;
  // Feeds go on where they all are as they were; else all begin anew. Ranks that stay keep what is
  // booked on them.
  void set_ranks(Member& member, const std::vector<FoundRank>& found, Effects& effects)
      SL_REQUIRES(mutex);
  // Judges the member, and has it published where it changed, with any change of `view`.
  void settle(Member& member, Effects& effects) SL_REQUIRES(mutex);
  // Members are judged anew for which what the others have is news.
  void compare_block_sizes(Effects& effects) SL_REQUIRES(mutex);
  // After the share of slow workers may have changed.
  void keep_slow(Effects& effects) SL_REQUIRES(mutex);
  void settle_one(Member& member, Effects& effects) SL_REQUIRES(mutex);
  // What the member lists is counted anew, if that or whether it counts is another.
  void count_names(Member& member, bool counts) SL_REQUIRES(mutex);
  // After a name may have got another meaning.
  void settle_renamed(Effects& effects) SL_REQUIRES(mutex);
  void set_state_metric(const Member& member, WorkerState now) const;
  void publish() SL_REQUIRES(mutex);
  void act(const Effects& effects) const SL_EXCLUDES(mutex);
  void replace_members(const std::vector<contract::WorkerSpec>& workers, Effects& effects)
      SL_REQUIRES(mutex);
  // After `failed_requests` was `before`.
  void count_failing(const Member& member, std::uint32_t before) SL_REQUIRES(mutex);
  void forget_failures(Member& member) SL_REQUIRES(mutex);
  // When the last event of the worker came.
  [[nodiscard]] Instant last_event(std::string_view name) const SL_EXCLUDES(mutex);
  void probe_answered(Member& member, const Probe& probe, Effects& effects) SL_REQUIRES(mutex);
  // Changes what is known of a rank with a feed; `change` says whether it did.
  void change(CacheId cache, const auto& change) {
    Effects effects;
    {
      const MutexLock lock(mutex);
      for (Member& member : members) {
        for (Rank& rank : member.view.ranks) {
          if (!rank.feed || rank.feed->cache != cache || !change(member, rank, effects)) continue;
          settle(member, effects);
          publish();
        }
      }
    }
    act(effects);
  }
  // `latest` is news from one of its feeds, which has taken it over.
  void take_block_size(Member& member, const AnnouncedBlockSize& latest, Effects& effects) const;
  // Of one of several: the worker's own line says nothing while another rank is well.
  static void tell_rank(const Member& member, const Rank& rank, Effects& effects);
};

}  // namespace sightline::fleet
