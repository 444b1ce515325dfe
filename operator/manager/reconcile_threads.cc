// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/reconcile_threads.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "common/base/log.h"
#include "common/contract/controller_metrics.h"

namespace sightline::manager {
namespace {

// After a failure the object waits for this multiple of the time that the attempt took, independent
// of the number of attempts.
constexpr int kFailureRest = 4;
constexpr std::chrono::seconds kFailureRestMax{30};

}  // namespace

using client::Answer;
using client::Failure;
using object::Key;

Workers::Workers(Options options, queue::BlockingQueue& queue, const Clock& clock,
                 runtime::Metrics& metrics)
    : reconcile_(std::move(options.reconcile)),
      queue_(queue),
      clock_(clock),
      metrics_(metrics),
      active_(metrics.gauge(contract::kReconcileActiveWorkers, {kController})),
      seconds_(metrics.histogram(contract::kReconcileSeconds, {kController})) {
  metrics.gauge(contract::kReconcileConcurrentMax, {kController})
      .set(static_cast<double>(options.count));
  // Each result has a series with 0 before its first count.
  for (const std::string_view result : {"success", "error", "requeue", "requeue_after"}) {
    metrics.counter(contract::kReconcileTotal, {kController, result});
  }
  metrics.counter(contract::kReconcileErrorsTotal, {kController});
  metrics.counter(contract::kReconcilePanicsTotal, {kController});
  const MutexLock lock(mutex_);
  running_ = options.count;
  for (std::size_t i = 0; i < options.count; ++i) {
    threads_.emplace_back("reconcile-" + std::to_string(i),
                          [this](const std::stop_token& stop) { run(stop); });
  }
}

bool Workers::finish_within(Duration time_max) {
  for (WorkerThread& thread : threads_) thread.request_stop();
  const MutexLock lock(mutex_);
  return ended_.wait_for(mutex_, time_max, [this]() SL_REQUIRES(mutex_) { return running_ == 0; });
}

void Workers::stop() {
  for (WorkerThread& thread : threads_) thread.request_stop();
  for (WorkerThread& thread : threads_) thread.join();
}

void Workers::run(const std::stop_token& stop) {
  while (const auto key = queue_.take(stop)) {
    active_.add(1);
    const Instant start = clock_.now();
    work(*key, start);
    seconds_.observe(std::chrono::duration<double>(clock_.now() - start).count());
    active_.add(-1);
    queue_.done(*key);
  }
  {
    const MutexLock lock(mutex_);
    --running_;
  }
  ended_.notify_all();
}

void Workers::work(const Key& key, Instant start) {
  const auto took = [&] { return clock_.now() - start; };
  try {
    const auto answer = reconcile_(key);
    finish(key, answer, took());
  } catch (const std::exception& thrown) {
    // A fault in the work on one object must not end the operator.
    metrics_.counter(contract::kReconcilePanicsTotal, {kController}).add();
    Failure failure;
    failure.message = std::string("an exception: ") + thrown.what();
    finish(key, failure, took());
  }
}

void Workers::finish(const Key& key, const Answer<std::optional<Duration>>& answer, Duration took) {
  const auto count = [&](std::string_view result) {
    metrics_.counter(contract::kReconcileTotal, {kController, result}).add();
  };
  if (!answer.ok()) {
    const Failure& failure = answer.error();
    // The stop ended this attempt: no error of the object.
    if (failure.reason == client::Reason::Cancelled) return;
    metrics_.counter(contract::kReconcileErrorsTotal, {kController}).add();
    count("error");
    log(LogLevel::Error, "reconciliation failed",
        {{"object", object::text_of(key)},
         {"reason", client::name_of(failure.reason)},
         {"problem", failure.message}});
    const Duration rest = std::min<Duration>(kFailureRest * took, kFailureRestMax);
    queue_.add_rate_limited(key, std::max(failure.retry_after.value_or(Duration::zero()), rest));
    return;
  }
  queue_.forget(key);
  // At least the time of the attempt: polls of a slow object occupy a worker at most half the time.
  if (*answer) queue_.add_after(key, std::max(**answer, took));
  count(*answer ? "requeue_after" : "success");
}

}  // namespace sightline::manager
