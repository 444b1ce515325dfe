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

// The `controller` label of the metrics.
inline constexpr std::string_view kController = "multimodalrouter";

// Threads that take objects from a queue and reconcile them. No two threads reconcile the same
// object at the same time. They count with the metrics of controller-runtime. An object that takes
// long, or fails, waits for longer than it took. So it cannot keep the threads from other objects.
// Thread safety: the methods from one thread.
class Workers {
 public:
  // Reconciles an object. The value says when to do it again. Nothing: only after a change.
  using Reconcile = std::function<client::Answer<std::optional<Duration>>(const object::Key& key)>;
  struct Options {
    std::size_t count = 1;
    Reconcile reconcile;
  };
  // Starts the threads. The other arguments must outlive it.
  Workers(Options options, queue::BlockingQueue& queue, const Clock& clock,
          runtime::Metrics& metrics);

  // Takes no more work. Returns false if the work under way does not end within time_max.
  bool finish_within(Duration time_max);
  // Takes no more work, and waits for the work under way without a limit.
  void stop();

 private:
  // Takes and works until the stop.
  void run(const std::stop_token& stop);
  // Reconciles. An exception counts as a failure of the object.
  void work(const object::Key& key, Instant start);
  // Counts the result, and decides when the object comes again.
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
  // The threads that run.
  std::size_t running_ SL_GUARDED_BY(mutex_) = 0;
  // Last, because the threads use all members above.
  std::vector<WorkerThread> threads_;
};

}  // namespace sightline::manager
