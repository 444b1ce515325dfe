// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/contract/worker_spec.h"
#include "common/runtime/metrics.h"

#include "router/cache/operations/facts.h"
#include "router/workers/fleet/discovery.h"
#include "router/workers/fleet/member.h"
#include "router/workers/fleet/snapshot.h"
#include "router/workers/fleet/worker.h"

namespace sightline::fleet {

// Told when the events of a rank can be read, and when they must not be any more. CacheIds are
// never reused: a worker that comes back, or whose configuration changes, gets new ones.
// Both are to return at once: probes of all workers wait for them. Whether a feed can be followed
// is told later, by take_facts().
struct FleetListeners {
  std::function<void(const Worker&, const Rank&)> feed_ready;  // of that rank, which has one
  std::function<void(CacheId)> feed_removed;
  // Asked, not told: when the last event message of the feed came, Instant() for none. Only
  // after a probe or a request failed, on the thread that said so.
  std::function<Instant(CacheId)> last_event;
};

// Who can serve: the state of every worker, decided from probes, events and failures (the rules
// stand in member.h), published as snapshots. Does no I/O; FleetControl feeds it.
//
// Thread safety: all methods from any thread. Listeners are called without a lock held, on the
// thread that called set_workers or apply_probe: call those two from one thread at a time.
class Fleet {
 public:
  using Options = FleetOptions;

  // Metrics and clock must outlive the fleet.
  Fleet(Options options, FleetListeners listeners, runtime::Metrics& metrics, const Clock& clock);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Replaces the configured workers: new ones start, missing ones leave, changed ones start anew
  // (a change of `drain` or of the key alone keeps the worker's feeds). Names are unique.
  void set_workers(const std::vector<contract::WorkerSpec>& workers);

  [[nodiscard]] std::shared_ptr<const FleetSnapshot> snapshot() const;

  // What is known of the cache of a feed: whether the index may be believed about it, and the block
  // size that its events tell. That wins over what the worker tells elsewhere; where it contradicts
  // the operator's configuration, or other events, the worker is excluded from overlap. Known to
  // requests when this returns. Unknown feeds are ignored.
  void take_facts(CacheId cache, const operations::CacheFacts& facts);

  // The feed cannot be followed, for good, and why: told in the log too. Unknown feeds are ignored.
  void refuse_feed(CacheId cache, std::string_view reason);

  // What is booked on the ranks; it lives as long as the fleet.
  [[nodiscard]] LoadBook& load_book();

  // A request to the worker failed by its fault, or reached it well.
  void report_failure(std::string_view worker, const Error& error);
  void report_success(std::string_view worker);

  // Workers whose probe is due now, and when the next one will be.
  struct DueProbes {
    std::vector<contract::WorkerSpec> workers;
    Instant next;
  };
  // Marks the returned workers, so many at most and the longest due first, as being probed until
  // apply_probe is called for them. Where more are due, `next` does not tell: ask again when a
  // probe has ended.
  [[nodiscard]] DueProbes take_due_probes(std::size_t most = kAllProbes);
  static constexpr std::size_t kAllProbes = std::numeric_limits<std::size_t>::max();

  // Called, from any thread, when a probe becomes due earlier than `next` said. Nothing: not told.
  void on_probe_sooner(std::function<void()> wake);

  // `spec` is the one the probe was taken for: results for a replaced worker are ignored.
  void apply_probe(const contract::WorkerSpec& spec, const Probe& probe);
  void apply_load(const contract::WorkerSpec& spec, const ServerLoad& load);
  // It says itself whether it sleeps.
  void apply_sleep(const contract::WorkerSpec& spec, bool is_asleep);

  // Looks at what the workers do with their requests, see note_work(). About once a second.
  void check_work();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::fleet
