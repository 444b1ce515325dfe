// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/result.h"
#include "common/contract/worker_spec.h"
#include "common/runtime/metrics.h"

#include "router/workers/lists/list_in_force.h"
#include "router/workers/lists/pushed.h"

namespace sightline::push {

// Which list of workers counts: the newest that was pushed, here or to a peer, else that of flags,
// environment and file. Once one was pushed, the file's workers are not taken any more.
// Thread safety: all methods from any thread.
class WorkerLists {
 public:
  struct Around {
    std::string revision;  // of this router: lists of another one are refused
    // Gives the fleet its workers. Runs under a lock: it may only leave them for another thread.
    std::function<void(std::vector<contract::WorkerSpec>)> hand_over;
    // A pushed list was taken, and which; without a lock.
    std::function<void(const lists::InForce&)> on_taken;
    runtime::Metrics& metrics;  // outlives it
  };
  explicit WorkerLists(Around around);

  // The workers of flags, environment and file at the start; nothing: there is no such list, not
  // even an empty one. They count at once, unless peers are asked first: then from
  // boot_without_peers() on. Hands nothing over.
  void boot(std::optional<std::vector<contract::WorkerSpec>> workers, bool asks_peers);
  // No peer had a list in time: nothing changes if there is one by now.
  void boot_without_peers();

  // The configuration was read again; an error keeps all as it is. Both are logged and counted.
  void reread(Result<std::vector<contract::WorkerSpec>> boot);

  struct Offered {
    lists::Verdict verdict = lists::Verdict::Same;
    lists::Difference difference;  // to the workers before; of TakeOver
    std::shared_ptr<const lists::InForce> in_force;
  };
  // Takes a pushed list if it is for this router and newer. The body is that of PUT /v1/workers,
  // from Source::Push or Peers. Errors: those of lists::parse_pushed_workers.
  Result<Offered> offer(std::string body, lists::Source from);

  [[nodiscard]] std::shared_ptr<const lists::InForce> in_force() const;

  // For the check `workers` of /readyz: which list, or why there is none.
  [[nodiscard]] Result<std::string> check() const;

 private:
  Offered judge_and_take(const std::shared_ptr<const lists::PushedList>& pushed,
                         lists::Source from);
  void tell(const Offered& offered, lists::Source from) const;
  void set_gauges(const lists::InForce& now) const;

  const Around around_;
  mutable Mutex mutex_;  // held for memory work only
  std::shared_ptr<const lists::InForce> in_force_ SL_GUARDED_BY(mutex_);
  bool asks_peers_ SL_GUARDED_BY(mutex_) = false;  // the boot list waits for their answer
  bool has_boot_ SL_GUARDED_BY(mutex_) = false;    // there is one
};

// "taken", "same", "other-revision", "older", "forked", "too-far": in answers and as a metric's
// label.
std::string_view name_of(lists::Verdict verdict);

}  // namespace sightline::push
