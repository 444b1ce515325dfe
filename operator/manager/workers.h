// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/runtime/metrics.h"
#include "common/runtime/worker_thread.h"

#include "operator/kube/client/failure.h"
#include "operator/kube/queue/blocking_queue.h"

namespace sightline::manager {

inline constexpr std::string_view kController = "multimodalrouter";

// Threads that take objects from a queue and reconcile them, each object by one at a time, and
// count it under the names of controller-runtime. An object that takes long, or fails, waits for
// longer than it took, so that it cannot keep them from the others.
class Workers {
 public:
  using Reconcile = std::function<client::Answer<std::optional<Duration>>(const object::Key& key)>;
  struct Options {
    std::size_t count = 1;
    Reconcile reconcile;
  };
  // Starts at once. The others must outlive it.
  Workers(Options options, queue::BlockingQueue& queue, const Clock& clock,
          runtime::Metrics& metrics);

  // Takes no more work. False: what is under way has not ended within that time.
  bool finish_within(Duration time_max);
  // The same, however long it takes.
  void stop();

 private:
  void run(const std::stop_token& stop);
  void work(const object::Key& key, Instant start);
  void finish(const object::Key& key, const client::Answer<std::optional<Duration>>& answer,
              Duration took);

  const Reconcile reconcile_;
  queue::BlockingQueue& queue_;
  const Clock& clock_;
  runtime::Metrics& metrics_;
  const runtime::Gauge active_;
  const runtime::Histogram seconds_;
  Mutex mutex_;
  CondVar ended_;
  std::size_t running_ SL_GUARDED_BY(mutex_) = 0;  // threads
  std::vector<WorkerThread> threads_;              // last: they use all of the above
};

}  // namespace sightline::manager
