// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/recorder/event_recorder.h"

#include <chrono>
#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/contract/controller_metrics.h"

#include "operator/kube/pace/backoff.h"

namespace sightline::recorder {

using client::Reason;

namespace {

constexpr std::chrono::milliseconds kLookMax{200};  // how soon it notices a stop
constexpr Duration kRefreshAfter = std::chrono::minutes(1);

}  // namespace

EventRecorder::EventRecorder(Reporter reporter, client::ApiClient& api, const Clock& clock,
                             runtime::Metrics& metrics)
    : api_(api),
      clock_(clock),
      written_(metrics.counter(contract::kEventsTotal, {"written"})),
      failed_(metrics.counter(contract::kEventsTotal, {"failed"})),
      dropped_(metrics.counter(contract::kEventsTotal, {"dropped"})),
      series_(std::move(reporter)),
      rng_(static_cast<std::uint64_t>(clock.wall().time_since_epoch().count())),
      thread_("kube-events", [this](const std::stop_token& stop) { run(stop); }) {}

void EventRecorder::record(ObjectEvent happening) {
  if (!waiting_.push(std::move(happening))) dropped_.add();
}

void EventRecorder::run(const std::stop_token& stop) {
  Instant refreshed_at = clock_.now();
  while (!stop.stop_requested()) {
    const auto happening = waiting_.pop_for(kLookMax);
    const Instant now = clock_.now();
    if (happening) {
      const auto made = series_.on_happening(now, clock_.wall(), *happening);
      if (made) write(*made, stop);
    }
    if (now - refreshed_at < kRefreshAfter) continue;
    refreshed_at = now;
    for (const EventWrite& due : series_.refresh(now)) write(due, stop);
  }
}

client::Answer<object::Value> EventRecorder::send(const EventWrite& write) {
  if (write.is_new) return api_.create(event_resource(), write.body);
  auto patched = api_.merge_patch(event_resource(), write.key, write.body, "");
  // The server keeps events for an hour.
  return failed(patched, Reason::NotFound) ? api_.create(event_resource(), write.whole) : patched;
}

void EventRecorder::write(const EventWrite& write, const std::stop_token& stop) {
  // Nothing notifies these. Only a stop ends the wait early.
  Mutex mutex;
  StopCondVar never;
  for (int tries = 1;; ++tries) {
    const auto answer = send(write);
    if (answer.ok() || failed(answer, Reason::AlreadyExists)) return written_.add();
    // The server would refuse the same event again.
    const bool is_final = answer.error().status != 0 || failed(answer, Reason::NotLeading);
    if (is_final || tries == kWriteTriesMax || stop.stop_requested()) {
      failed_.add();
      return log(LogLevel::Debug, "cannot write an event", {{"problem", answer.error().message}});
    }
    // 0.75 to 1.25 of kWriteRetry.
    const Duration wait = pace::jittered(kWriteRetry * 3 / 4, 2.0 / 3, rng_);
    const MutexLock lock(mutex);
    never.wait_until(mutex, stop, system_clock().now() + wait, []() { return false; });
  }
}

}  // namespace sightline::recorder
