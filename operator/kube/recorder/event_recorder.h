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

inline constexpr std::size_t kHappeningsMax = 1000;  // that wait to be written
inline constexpr int kWriteTriesMax = 12;
inline constexpr Duration kWriteRetry = std::chrono::seconds(10);  // a quarter more or less

// Tells users, in the background, what happens to objects. Whatever becomes of it, nobody else
// notices: what finds no room or cannot be written is counted and left out.
// Thread safety: record() from any thread.
class EventRecorder {
 public:
  // The others must outlive it. Its end drops what waits.
  EventRecorder(Reporter reporter, client::ApiClient& api, const Clock& clock,
                runtime::Metrics& metrics);

  void record(Happening happening);

 private:
  void run(const std::stop_token& stop);
  void write(const EventWrite& write, const std::stop_token& stop);
  [[nodiscard]] client::Answer<object::Value> send(const EventWrite& write);

  client::ApiClient& api_;
  const Clock& clock_;
  const runtime::Counter written_;
  const runtime::Counter failed_;
  const runtime::Counter dropped_;
  BoundedQueue<Happening> waiting_{kHappeningsMax};
  EventSeries series_;   // of the thread
  Rng rng_;              // of the thread
  WorkerThread thread_;  // last: it uses all of the above
};

}  // namespace sightline::recorder
