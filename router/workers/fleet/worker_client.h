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

// Calls to workers at a low rate: health, models, event sources, metrics. They have their own I/O
// thread, so a large or slow answer delays no request. The connection of the last call to a worker
// is kept for the next one.
// Thread safety: all methods from one thread. Callbacks run on the I/O thread.
class WorkerClient {
 public:
  struct Options {
    // Of a whole call.
    std::chrono::milliseconds timeout{2'000};
    // The /metrics of vLLM has about 70 KB.
    std::size_t answer_bytes_max = 4 << 20;
    // Outlives this object. Null: it has its own look-ups.
    hosts::Lookup* names = nullptr;
  };

  explicit WorkerClient(const Options& options);
  ~WorkerClient();  // calls stop()
  WorkerClient(const WorkerClient&) = delete;
  WorkerClient& operator=(const WorkerClient&) = delete;

  // Requests /health, /v1/models and the family's paths for event sources and load, at the same
  // time. With AskVersion::Yes also its path for the version. Calls back exactly once. The key, if
  // there is one, is sent as a bearer token. An answer 401 or 403 is ErrorCode::Unauthorized.
  enum class AskVersion : bool { No, Yes };
  // The server to ask.
  struct EngineAddress {
    http::ServerAddress address;
    const family::Family& family;
    std::string api_key = {};
  };
  void start_probe(const EngineAddress& server, AskVersion ask_version,
                   std::function<void(Probe)> done);
  // Requests only the load.
  void start_load(const EngineAddress& server, std::function<void(Result<ServerLoad>)> done);
  // Asks whether the engine sleeps. The family must have a path for it. Errors: as in the parts of
  // a probe, and Corrupt if the answer does not say it.
  void start_sleep(const EngineAddress& server, std::function<void(Result<bool>)> done);

  // Cancels running calls and waits for their callbacks. No call may be started afterwards. May be
  // called twice.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sightline::fleet
