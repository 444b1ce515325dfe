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

// One thread that is a candidate for a Lease. Its requests need a client of their own, with short
// timeouts, that does not ask whether this process leads.
// Thread safety: all methods from any thread.
class Elector {
 public:
  struct Told {
    std::function<void()> on_lead;  // on its thread; must be short
    std::function<void()> on_lost;  // the process has to end: nothing may be written any more
  };

  struct Options {
    ElectionOptions election;  // check() must hold
    Told told;
    std::uint64_t seed = 0;
  };

  // Starts at once. The others must outlive it.
  Elector(Options options, client::ApiClient& api, const Clock& clock, runtime::Metrics& metrics);

  // Whether this process may write now, by the monotonic clock: false once the lease is in doubt,
  // even if the thread has not noticed.
  [[nodiscard]] bool still_leads() const;

  // Ends the candidacy and gives the lease back, if it is ours: after all work has ended.
  void release();

 private:
  void run(const std::stop_token& stop);
  void ask(const Want& want);
  void publish();

  Election election_;  // of the thread; of release() once that has ended
  client::ApiClient& api_;
  const Clock& clock_;
  const Told told_;
  const runtime::Gauge leads_gauge_;
  const runtime::Counter slow_paths_;
  std::atomic<std::int64_t> leads_until_{0};  // of the monotonic clock; 0: does not lead
  std::size_t slow_paths_told_ = 0;           // of the thread
  Mutex mutex_;
  StopCondVar never_;
  WorkerThread thread_;  // last: it uses all of the above
};

}  // namespace sightline::election
