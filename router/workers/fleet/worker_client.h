// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "common/base/result.h"
#include "common/http/client.h"

#include "router/workers/fleet/discovery.h"

namespace sightline::fleet {

// Low-rate calls to workers: health, models, event sources, metrics. They have an I/O thread of
// their own: a large or slow answer delays no request. The connection of the last call to a worker
// is kept for the next one.
// Thread safety: all methods from one thread; callbacks run on the I/O thread.
class WorkerClient {
 public:
  struct Options {
    std::chrono::milliseconds timeout{2'000};  // of a whole call
    std::size_t answer_bytes_max = 4 << 20;    // vLLM's /metrics is about 70 KB
    hosts::Lookup* names = nullptr;            // outlived by them; null: look-ups of its own
  };

  explicit WorkerClient(const Options& options);
  ~WorkerClient();  // as stop()
  WorkerClient(const WorkerClient&) = delete;
  WorkerClient& operator=(const WorkerClient&) = delete;

  // Asks /health, /v1/models and what the family's servers are asked for sources and load at once,
  // and for their version where that is wanted. Calls back exactly once. The key, if any, goes
  // along as bearer token; an answer 401 or 403 is ErrorCode::Unauthorized.
  enum class AskVersion : bool { No, Yes };
  struct Asked {
    http::ServerAddress address;
    const family::Family& family;
    std::string api_key = {};
  };
  void start_probe(const Asked& server, AskVersion ask_version, std::function<void(Probe)> done);
  // Asks for the load only.
  void start_load(const Asked& server, std::function<void(Result<ServerLoad>)> done);
  // Asks whether the engine sleeps, a family that has the question. Errors: as of the parts of a
  // probe; Corrupt for an answer that does not say.
  void start_sleep(const Asked& server, std::function<void(Result<bool>)> done);

  // Gives up what runs and waits for its callbacks. Nothing may be started after it. Idempotent.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::fleet
