// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stop_token>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/runtime/metrics.h"
#include "common/runtime/worker_thread.h"

#include "operator/kube/client/api_client.h"
#include "operator/kube/election/election.h"

namespace sightline::election {

// A thread as candidate for a Lease. Its requests need a client of their own, with short
// timeouts, which does not ask whether this process leads.
// Thread safety: all methods from any thread.
class Elector {
 public:
  // The callbacks of an elector.
  struct Callbacks {
    // On its thread. It must not wait.
    std::function<void()> on_lead;
    // On its thread. The process must end and write nothing more.
    std::function<void()> on_lost;
  };

  struct Options {
    // check() must accept it.
    ElectionOptions election;
    Callbacks told;
    std::uint64_t seed = 0;
  };

  // Starts the thread. The other arguments must outlive it.
  Elector(Options options, client::ApiClient& api, const Clock& clock, runtime::Metrics& metrics);

  // Whether this process may write now, by monotonic time. False once the lease is in doubt, even
  // if the thread has not noticed yet.
  [[nodiscard]] bool still_leads() const;

  // Ends the candidacy and releases the lease if this process holds it. Call it after all work has
  // ended.
  void release();

 private:
  // Makes the requests of `election_` until the stop, or until the lease is lost.
  void run(const std::stop_token& stop);
  // Makes one request and gives the answer to `election_`.
  void ask(const Want& want);
  // Shows the state of `election_` to still_leads() and in the metrics.
  void publish();

  // Only the thread uses it, and release() after the thread has ended.
  Election election_;
  client::ApiClient& api_;
  const Clock& clock_;
  const Callbacks told_;
  const runtime::Gauge leads_gauge_;
  const runtime::Counter slow_paths_;
  // In monotonic time. 0: it does not lead.
  std::atomic<std::int64_t> leads_until_{0};
  // Only the thread uses it.
  std::size_t slow_paths_told_ = 0;
  Mutex mutex_;
  StopCondVar never_;
  // Last, because it uses all members above.
  WorkerThread thread_;
};

}  // namespace sightline::election
