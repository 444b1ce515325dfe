// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <stop_token>

#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/base/rng.h"
#include "common/runtime/metrics.h"
#include "common/runtime/worker_thread.h"

#include "operator/kube/client/api_client.h"
#include "operator/kube/recorder/event_series.h"

namespace sightline::recorder {

// The most happenings that wait to be written.
inline constexpr std::size_t kHappeningsMax = 1000;
// The most attempts to write one event.
inline constexpr int kWriteTriesMax = 12;
// The pause between attempts, a quarter more or less.
inline constexpr Duration kWriteRetry = std::chrono::seconds(10);

// Writes events about objects for users, in the background. A failure affects no other work: what
// finds no room or cannot be written is counted and dropped.
// Thread safety: record() from any thread.
class EventRecorder {
 public:
  // The other arguments must outlive it. The destructor drops what waits.
  EventRecorder(Reporter reporter, client::ApiClient& api, const Clock& clock,
                runtime::Metrics& metrics);

  // Queues a happening. Never waits.
  void record(ObjectEvent happening);

 private:
  // Writes happenings as they come, and counted series when they are due, until the stop.
  void run(const std::stop_token& stop);
  // Writes one event, with pauses between attempts. Gives up if the server refuses it, or if this
  // process does not lead.
  void write(const EventWrite& write, const std::stop_token& stop);
  // One attempt. If the server has dropped the event of a series, it creates the event again.
  [[nodiscard]] client::Answer<object::Value> send(const EventWrite& write);

  client::ApiClient& api_;
  const Clock& clock_;
  const runtime::Counter written_;
  const runtime::Counter failed_;
  const runtime::Counter dropped_;
  BoundedQueue<ObjectEvent> waiting_{kHappeningsMax};
  // Only the thread uses these two.
  EventSeries series_;
  Rng rng_;
  // Last, because it uses all members above.
  WorkerThread thread_;
};

}  // namespace sightline::recorder
