// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/contract/worker_spec.h"
#include "common/runtime/metrics.h"

#include "router/fleet/discovery.h"
#include "router/fleet/worker.h"

namespace sightline::fleet {

// Told when the events of an engine can be read, and when they must not be any more. EngineIds
// are never reused: a worker that comes back, or whose configuration changes, gets new ones.
struct FleetListeners {
  std::function<void(const EngineEndpoints&)> engine_ready;
  std::function<void(EngineId)> engine_removed;
};

// Who can serve: the state of every worker, decided from probes, events and failures, published
// as snapshots. Does no I/O; FleetControl feeds it.
//
// Thread safety: all methods from any thread. Listeners are called without a lock held, on the
// thread that called set_workers or apply_probe: call those two from one thread at a time.
class Fleet {
 public:
  struct Options {
    Duration probe_interval = std::chrono::seconds(5);
    Duration suspect_backoff = std::chrono::milliseconds(500);  // after the first failure
    Duration suspect_backoff_max = std::chrono::seconds(30);    // it doubles up to this
  };

  // Metrics and clock must outlive the fleet.
  Fleet(Options options, FleetListeners listeners, runtime::Metrics& metrics, const Clock& clock);
  ~Fleet();
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // Replaces the configured workers: new ones start, missing ones leave, changed ones start anew
  // (a change of `drain` alone keeps the worker's engines). Names are unique.
  void set_workers(const std::vector<contract::WorkerSpec>& workers);

  [[nodiscard]] std::shared_ptr<const FleetSnapshot> snapshot() const;

  // What the last events say about an engine's block size, in tokens; 0: nothing. It wins over what
  // the engine tells elsewhere; if it contradicts the operator's configuration, or its other events
  // (has_several), the worker is excluded from overlap. Unknown engines are ignored.
  void set_block_size_from_events(EngineId engine, std::uint32_t tokens, bool has_several = false);

  // Whether the index may be believed about an engine: `unverified` says why not, empty: it may.
  // An engine begins unverified. Known to requests when this returns. Unknown engines are ignored.
  void set_event_health(EngineId engine, std::string_view unverified);

  // A request to the worker failed in a way that makes it suspect, or reached it well.
  void report_failure(std::string_view worker, std::string_view reason);
  void report_success(std::string_view worker);

  // Workers whose probe is due now, and when the next one will be.
  struct DueProbes {
    std::vector<contract::WorkerSpec> workers;
    Instant next;
  };
  // Marks the returned workers as being probed until apply_probe is called for them.
  [[nodiscard]] DueProbes take_due_probes();

  // Called, from any thread, when a probe becomes due earlier than `next` said. Nothing: not told.
  void on_probe_sooner(std::function<void()> wake);

  // `spec` is the one the probe was taken for: results for a replaced worker are ignored.
  void apply_probe(const contract::WorkerSpec& spec, const Probe& probe);
  void apply_load(const contract::WorkerSpec& spec, const EngineLoad& load);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::fleet
