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

// What is booked for an inquiry of which so many blocks are expected to be reused.
fleet::Booking booking_of(const Inquiry& inquiry, std::uint64_t reused_blocks);

// The router role in this process: match against the index, select by cost, book the load; then
// suspicion and audit by how the attempt ended. Every inquiry is decided in one view of the fleet.
// A view whose workers have another block size than the keys claims no overlap.
class LocalSelector : public Selector {
 public:
  // All outlive it.
  struct Sources {
    const Published<contract::ServeSettings>& settings;  // its routing.*, anew for each choice
    fleet::Fleet& fleet;
    const index::IndexReader& index;
    const index::RemovalJournal& removals;
    // Told of every answer that can be compared with what was expected.
    std::function<void(const audit::Answered&)> compare;
    runtime::Metrics& metrics;
    const Clock& clock;
    // Name among several routers that may share a seed; empty: it is alone. Each of them draws its
    // own ties, the same ones whenever it starts.
    std::string replica = {};
  };
  explicit LocalSelector(const Sources& sources);

  [[nodiscard]] Task<Result<Selection>> select(const Inquiry& inquiry) override;
  void first_token(ReservationId reservation) override;
  void end(ReservationId reservation, const Ending& ending) override;
  [[nodiscard]] std::shared_ptr<fleet::LifeSign> life(ReservationId reservation) override;
  [[nodiscard]] Task<Result<Explanation>> explain(const Inquiry& inquiry) override;

  // Books work that goes on already. Nothing: there is no such worker or rank.
  [[nodiscard]] std::optional<Selection> adopt(const Adoption& work);

  // Reservations that have not ended.
  [[nodiscard]] std::size_t open_reservations() const;

 private:
  // Who may serve an inquiry, with what each would save. Parallel vectors.
  struct Shortlist {
    std::shared_ptr<const fleet::FleetSnapshot> fleet;
    std::vector<Destination> destinations;
    std::vector<routing::Candidate> candidates;
    std::uint64_t removals = 0;  // position of the journal before the index was asked
    Instant asked{};             // when that was
  };
  // An attempt that has not ended, and what is to be compared with its answer.
  struct Open {
    fleet::BookedWork booked;
    std::shared_ptr<const fleet::Worker> worker;
    // The cache that the prediction is about; nothing where the worker's count proves nothing.
    std::optional<CacheId> audited;
    std::shared_ptr<const std::vector<keys::BlockKey>> keys;
    std::uint64_t overlap_blocks = 0;
    std::uint64_t best_blocks = 0;  // what the candidate with the most of them would reuse
    std::vector<TokenSpan> images;
    routing::Job job;
    bool busy = false;    // other requests of ours ran there
    bool waited = false;  // others of ours were before its prefill
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
  // Every choice that is carried out takes a turn; an explained one looks at the next.
  [[nodiscard]] routing::Decision decide(const Inquiry& inquiry, const Shortlist& shortlist,
                                         std::uint64_t turn) const;
  Selection open(const Destination& destination, const fleet::Booking& booking, Open open);
  void compare(const Open& open, const Ending& ending);
  // What the worker spared itself, and how fast it is.
  void count_saved(const fleet::Worker& worker, const openai::Usage& usage,
                   const std::optional<Duration>& first_token);

  const Sources sources_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> turn_{0};
  mutable Mutex mutex_;  // held for memory work only
  std::unordered_map<ReservationId, Open> open_ SL_GUARDED_BY(mutex_);
  ReservationId next_ SL_GUARDED_BY(mutex_) = 1;
};

}  // namespace sightline::selection
