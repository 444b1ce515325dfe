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

// Decides which list of workers counts. This is the newest list that was pushed here or to a peer.
// Without a push it is the list from flags, environment and file. After a push, the file's workers
// do not count.
//
// Thread safety: any thread may call any method.
class WorkerLists {
 public:
  struct Deps {
    // The revision of this router. Lists of another revision are rejected.
    std::string revision;
    // Gives the workers to the fleet. It runs under a lock and may only store them for another
    // thread.
    std::function<void(std::vector<contract::WorkerSpec>)> hand_over;
    // Called with a pushed list that was accepted, without a lock.
    std::function<void(const lists::InForce&)> on_taken;
    // Must live longer.
    runtime::Metrics& metrics;
  };
  explicit WorkerLists(Deps deps);

  // Sets the workers of flags, environment and file at the start. An absent list differs from an
  // empty one. The list counts immediately. With asks_peers it counts from boot_without_peers() on.
  // It does not call hand_over.
  void boot(std::optional<std::vector<contract::WorkerSpec>> workers, bool asks_peers);
  // No peer had a list in time. Changes nothing if a list was pushed meanwhile.
  void boot_without_peers();

  // Takes the configuration after it was read again. An error keeps everything as it is. Both are
  // logged and counted.
  void reread(Result<std::vector<contract::WorkerSpec>> boot);

  // The result of offer().
  struct OfferResult {
    lists::ListVerdict verdict = lists::ListVerdict::Same;
    // For TakeOver: the difference to the workers before.
    lists::Difference difference;
    std::shared_ptr<const lists::InForce> in_force;
  };
  // Accepts a pushed list if it is for this router and newer. The body is the one of PUT
  // /v1/workers. `from` is ListSource::Push or ListSource::Peers. Errors: those of
  // lists::parse_pushed_workers().
  Result<OfferResult> offer(std::string body, lists::ListSource from);

  // The list that counts at this moment. Never null.
  [[nodiscard]] std::shared_ptr<const lists::InForce> in_force() const;

  // For the check `workers` of /readyz: which list counts, or why no list does.
  [[nodiscard]] Result<std::string> check() const;

 private:
  // Compares the list with the newest pushed one, and takes it over if it is newer.
  OfferResult judge_and_take(const std::shared_ptr<const lists::PushedList>& pushed,
                             lists::ListSource from);
  // Counts and logs the result, and calls on_taken for a list that was taken.
  void tell(const OfferResult& offered, lists::ListSource from) const;
  // Sets the gauges of the list that counts.
  void set_gauges(const lists::InForce& now) const;

  const Deps deps_;
  mutable Mutex mutex_;  // held for memory work only
  std::shared_ptr<const lists::InForce> in_force_ SL_GUARDED_BY(mutex_);
  // The list of the start waits for the peers' answers.
  bool asks_peers_ SL_GUARDED_BY(mutex_) = false;
  // A list of the start exists.
  bool has_boot_ SL_GUARDED_BY(mutex_) = false;
};

// "taken", "same", "other-revision", "older", "forked" or "too-far", for answers and as a metric's
// label.
std::string_view name_of(lists::ListVerdict verdict);

}  // namespace sightline::push
