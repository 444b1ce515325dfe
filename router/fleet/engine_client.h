// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/base/result.h"

#include "router/fleet/fleet.h"

namespace sightline::fleet {

// Low-rate calls to engines: health, models, event sources, metrics. Never on the data path.
// Thread safety: start_* and stop from one thread; callbacks run on the client's own threads.
class EngineClient {
 public:
  struct Options {
    std::chrono::milliseconds timeout{2'000};  // of a whole call
    std::size_t answer_bytes_max = 4 << 20;    // vLLM's /metrics is about 70 KB
  };

  explicit EngineClient(Options options);
  ~EngineClient();  // as stop()
  EngineClient(const EngineClient&) = delete;
  EngineClient& operator=(const EngineClient&) = delete;

  // Asks /health, /v1/models, /kv_event_sources and /metrics of "http://host:port" at once, and
  // calls back exactly once, after about the timeout at the latest.
  void start_probe(const std::string& url, std::function<void(Probe)> done);
  // Asks /metrics only.
  void start_load(const std::string& url, std::function<void(Result<EngineLoad>)> done);

  // Cancels what runs and waits for its callbacks.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sightline::fleet
