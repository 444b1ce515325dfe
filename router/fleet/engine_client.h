// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "common/base/result.h"

#include "router/fleet/discovery.h"
#include "router/http/client.h"

namespace sightline::fleet {

// Low-rate calls to engines: health, models, event sources, metrics. They have an I/O thread of
// their own: a large or slow answer delays no request. The connection of the last call to an engine
// is kept for the next one.
// Thread safety: all methods from one thread; callbacks run on the I/O thread.
class EngineClient {
 public:
  struct Options {
    std::chrono::milliseconds timeout{2'000};  // of a whole call
    std::size_t answer_bytes_max = 4 << 20;    // vLLM's /metrics is about 70 KB
  };

  explicit EngineClient(const Options& options);
  ~EngineClient();  // as stop()
  EngineClient(const EngineClient&) = delete;
  EngineClient& operator=(const EngineClient&) = delete;

  // Asks /health, /v1/models, /kv_event_sources and /metrics at once, and calls back exactly once.
  void start_probe(const http::Endpoint& engine, std::function<void(Probe)> done);
  // Asks /metrics only.
  void start_load(const http::Endpoint& engine, std::function<void(Result<EngineLoad>)> done);

  // Gives up what runs and waits for its callbacks. Nothing may be started after it. Idempotent.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::fleet
