// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/base/result.h"

#include "router/fleet/discovery.h"

namespace sightline::fleet {

// Low-rate calls to engines: health, models, event sources, metrics. Never on the data path.
// Thread safety: all methods from one thread; callbacks run on the HTTP library's threads.
class EngineClient {
 public:
  struct Options {
    std::chrono::milliseconds timeout{2'000};  // of a whole call
    std::size_t answer_bytes_max = 4 << 20;    // vLLM's /metrics is about 70 KB
  };

  // Clock must outlive the client.
  EngineClient(Options options, const Clock& clock);
  ~EngineClient();  // as stop()
  EngineClient(const EngineClient&) = delete;
  EngineClient& operator=(const EngineClient&) = delete;

  // Asks /health, /v1/models, /kv_event_sources and /metrics of "http://host:port" at once, and
  // calls back exactly once.
  void start_probe(const std::string& url, std::function<void(Probe)> done);
  // Asks /metrics only.
  void start_load(const std::string& url, std::function<void(Result<EngineLoad>)> done);

  // Ends calls that are past their time, and tells when the next one will be: a peer that sends
  // one byte now and then would keep a call alive. To be called about then.
  Instant cancel_overdue();

  // Cancels what runs and waits for its callbacks. Idempotent.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sightline::fleet
