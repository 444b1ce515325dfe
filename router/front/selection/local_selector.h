// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/published.h"
#include "common/contract/serve_settings.h"
#include "common/runtime/metrics.h"

#include "router/cache/audit/audit.h"
#include "router/cache/index/prefix_index.h"
#include "router/cache/index/removal_journal.h"
#include "router/front/selection/destinations.h"
#include "router/front/selection/selector.h"
#include "router/workers/fleet/fleet.h"

namespace sightline::selection {

// Returns the load to reserve for an inquiry. reused_blocks is the number of blocks that the worker
// is expected to reuse.
fleet::Booking booking_of(const Inquiry& inquiry, std::uint64_t reused_blocks);

// The router role in this process. It matches the prompt against the index, selects a worker by
// cost and reserves the load. When the attempt ends, it reports failures to the fleet and the
// result to the audit. Each inquiry uses one snapshot of the fleet. If the workers have another
// block size than the keys, it claims no overlap.
//
// Thread safety: as Selector.
class LocalSelector : public Selector {
 public:
  // The parts that it uses. All must live longer.
  struct Deps {
    // Its routing.* settings are read again for each choice.
    const Published<contract::ServeSettings>& settings;
    fleet::Fleet& fleet;
    const index::IndexReader& index;
    const index::RemovalJournal& removals;
    // Called for every answer that can be compared with its prediction.
    std::function<void(const audit::Answered&)> compare;
    runtime::Metrics& metrics;
    const Clock& clock;
    // The name of this router among several that share routing.seed, or empty for a single router.
    // Each router breaks ties in an order of its own, which is the same after a restart.
    std::string replica = {};
  };
  explicit LocalSelector(const Deps& sources);

  [[nodiscard]] Task<Result<Selection>> select(const Inquiry& inquiry) override;
  void first_token(ReservationId reservation) override;
  void end(ReservationId reservation, const Ending& ending) override;
  [[nodiscard]] std::shared_ptr<fleet::LifeSign> life(ReservationId reservation) override;
  [[nodiscard]] Task<Result<Explanation>> explain(const Inquiry& inquiry) override;

  // Reserves the load of a request that already runs. Returns nothing if the worker or rank does
  // not exist.
  [[nodiscard]] std::optional<Selection> adopt(const Adoption& work);

  // The number of reservations that have not ended.
  [[nodiscard]] std::size_t open_reservations() const;

 private:
  // The destinations that may serve an inquiry, and the savings of each. Parallel vectors.
  struct Shortlist {
    std::shared_ptr<const fleet::FleetSnapshot> fleet;
    std::vector<Destination> destinations;
    std::vector<routing::Candidate> candidates;
    // The position of the journal before the index was read.
    std::uint64_t removals = 0;
    // The time of this position.
    Instant asked{};
  };
  // An attempt that has not ended, with the data to compare its answer with.
  struct Open {
    fleet::BookedWork booked;
    std::shared_ptr<const fleet::Worker> worker;
    // The cache that the prediction is about. Absent if the worker's count of reused tokens proves
    // nothing.
    std::optional<CacheId> audited;
    std::shared_ptr<const std::vector<keys::BlockKey>> keys;
    std::uint64_t overlap_blocks = 0;
    // The most blocks that any candidate would reuse.
    std::uint64_t best_blocks = 0;
    std::vector<TokenSpan> images;
    routing::Job job;
    // Other requests of this router ran there.
    bool busy = false;
    // The prefill of other requests of this router was still due there.
    bool waited = false;
    std::uint64_t removals = 0;
    Instant asked{};
  };

  [[nodiscard]] Result<Selection> choose(const Inquiry& inquiry);
  [[nodiscard]] Result<Selection> least_loaded(const Inquiry& inquiry);
  [[nodiscard]] Result<Explanation> explained(const Inquiry& inquiry) const;
  [[nodiscard]] Result<Shortlist> match(const Inquiry& inquiry) const;
  [[nodiscard]] routing::Candidate candidate_of(const Destination& destination,
                                                const Inquiry& inquiry,
                                                const index::Overlaps& overlaps) const;
  // Decides without side effects. Every real choice uses a turn of its own. An explanation uses the
  // next one.
  [[nodiscard]] routing::Decision decide(const Inquiry& inquiry, const Shortlist& shortlist,
                                         std::uint64_t turn) const;
  Selection open(const Destination& destination, const fleet::Booking& booking, Open open);
  void compare(const Open& open, const Ending& ending);
  // Counts the prefill time that reused tokens saved. Learns the worker's speed from first_token,
  // if present.
  void count_saved(const fleet::Worker& worker, const openai::Usage& usage,
                   const std::optional<Duration>& first_token);

  const Deps sources_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> turn_{0};
  mutable Mutex mutex_;  // held for memory work only
  std::unordered_map<ReservationId, Open> open_ SL_GUARDED_BY(mutex_);
  ReservationId next_ SL_GUARDED_BY(mutex_) = 1;
};

}  // namespace sightline::selection
