// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/result.h"

#include "simulator/cluster/settings.h"

namespace sightline::cluster {

// Where one engine listens.
struct EngineAddresses {
  std::string url;          // "http://127.0.0.1:8101"
  std::uint32_t ranks = 1;  // data-parallel ranks
  // Of the first rank, the others' ports following; empty where they do not.
  std::string events;  // "tcp://127.0.0.1:5557": PUB, bound by the engine
  std::string replay;  // "tcp://127.0.0.1:5657": ROUTER, bound by the engine; empty: none
  // All of them as the value of `sightline serve --worker`, under the given name.
  [[nodiscard]] std::string worker_flag(const std::string& name) const;
};

// What an engine has done since it started; the ground truth for judging a router.
struct EngineCounters {
  std::uint64_t requests = 0;        // chat and completion requests accepted
  std::uint64_t prompt_tokens = 0;   // of scheduled requests
  std::uint64_t cached_tokens = 0;   // of those, found in the prefix cache
  std::uint64_t prefill_tokens = 0;  // computed
  std::uint64_t encoder_tokens = 0;  // computed
  std::uint64_t generated_tokens = 0;
  std::uint64_t finished = 0;
  std::uint64_t aborted = 0;        // client left
  std::uint64_t running = 0;        // at the moment
  std::uint64_t waiting = 0;        // at the moment
  std::uint64_t blocks_cached = 0;  // distinct hashes held at the moment
};

// N simulated engines in this process: HTTP, events and replay on real sockets.
// Thread safety: all methods from any thread; start and stop from one.
class SimulatedCluster {
 public:
  // Listening when it returns. Errors: InvalidArgument (settings, model directory), Unavailable
  // (a port is taken).
  static Result<std::unique_ptr<SimulatedCluster>> start(const SimulateSettings& settings);
  struct State;
  explicit SimulatedCluster(std::unique_ptr<State> state);
  // Ends running requests without an answer and joins all threads.
  ~SimulatedCluster();

  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] const EngineAddresses& endpoints(std::size_t engine) const;
  [[nodiscard]] EngineCounters counters(std::size_t engine) const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::cluster
