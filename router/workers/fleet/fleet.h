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

// What the fleet calls when the events of a rank can be read, and when they must not be read any
// more. CacheIds are never used again: a worker that comes back, or whose configuration changes,
// gets new ones.
// All calls must return quickly, because the probes of all workers wait for them. take_facts()
// reports later whether a feed can be followed.
struct FleetListeners {
  // The events of this rank can be read. The rank has a feed.
  std::function<void(const Worker&, const Rank&)> feed_ready;
  // The feed must not be read any more.
  std::function<void(CacheId)> feed_removed;
  // Returns when the last event message of the feed arrived, Instant() if there was no message.
  // Called only after a probe or a request failed, on the thread that reported it.
  std::function<Instant(CacheId)> last_event;
};

// Which workers can serve: the state of every worker, decided from probes, events and failed
// requests. member.h has the rules. The fleet publishes snapshots. It does no I/O: FleetControl
// does that.
//
// Thread safety: all methods from any thread. Listeners are called without a lock, on the thread
// that called set_workers() or apply_probe(). Call these two from one thread at a time.
class Fleet {
 public:
  using Options = FleetOptions;

  // `metrics` and `clock` outlive the fleet.
  Fleet(Options options, FleetListeners listeners, runtime::Metrics& metrics, const Clock& clock);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Replaces the configured workers. New workers start, missing ones leave, changed ones begin
  // again. If only `drain` or the key changed, the worker keeps its feeds. Names are unique.
  void set_workers(const std::vector<contract::WorkerSpec>& workers);

  // The fleet at this moment.
  [[nodiscard]] std::shared_ptr<const FleetSnapshot> snapshot() const;

  // Sets the facts about the cache of a feed: whether its index entries count, and the block size
  // of its events. This size overrides the worker's other reports. If it contradicts the operator's
  // setting or other events, the worker is excluded from overlap. Requests see the change when this
  // returns. Unknown feeds are ignored.
  void take_facts(CacheId cache, const operations::CacheFacts& facts);

  // The feed cannot be followed, for good. The reason is logged too. Unknown feeds are ignored.
  void refuse_feed(CacheId cache, std::string_view reason);

  // The booked work of the ranks. It lives as long as the fleet.
  [[nodiscard]] LoadBook& load_book();

  // A request to the worker failed by the worker's fault, or succeeded.
  void report_failure(std::string_view worker, const Error& error);
  void report_success(std::string_view worker);

  // The workers to probe now, and when the next probe is due.
  struct DueProbes {
    std::vector<contract::WorkerSpec> workers;
    Instant next;
  };
  // Returns the due workers, at most `most` and the longest due first. They count as probed until
  // apply_probe() is called for them. If more are due, `next` does not say so: call this again when
  // a probe has ended.
  [[nodiscard]] DueProbes take_due_probes(std::size_t most = kAllProbes);
  static constexpr std::size_t kAllProbes = std::numeric_limits<std::size_t>::max();

  // Sets the function to call, on any thread, when a probe becomes due before `next`. Nothing: no
  // call.
  void on_probe_sooner(std::function<void()> wake);

  // Takes the results of a probe, or the load. `spec` is the one for which the probe was made.
  // Results of a replaced worker are ignored.
  void apply_probe(const contract::WorkerSpec& spec, const Probe& probe);
  void apply_load(const contract::WorkerSpec& spec, const ServerLoad& load);
  // The worker reports whether it sleeps.
  void apply_sleep(const contract::WorkerSpec& spec, bool is_asleep);

  // Checks how the workers progress with their requests, see note_work(). Call it about once a
  // second.
  void check_work();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::fleet
