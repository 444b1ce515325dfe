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

// The addresses of one engine.
struct EngineAddresses {
  std::string url;          // for example "http://127.0.0.1:8101"
  std::uint32_t ranks = 1;  // data-parallel ranks
  // The ports of the first rank. The other ranks have the following ports. Empty if their ports do
  // not follow.
  // "tcp://127.0.0.1:5557": PUB, bound by the engine.
  std::string events;
  // "tcp://127.0.0.1:5657": ROUTER, bound by the engine. Empty without a replay socket.
  std::string replay;
  // Returns all addresses as a value for `sightline serve --worker`, with this name.
  [[nodiscard]] std::string worker_flag(const std::string& name) const;
};

// The counters of an engine since its start. Tests compare a router with them.
struct EngineCounters {
  // Accepted chat and completion requests.
  std::uint64_t requests = 0;
  // Of scheduled requests.
  std::uint64_t prompt_tokens = 0;
  // The part of prompt_tokens that was found in the prefix cache.
  std::uint64_t cached_tokens = 0;
  std::uint64_t prefill_tokens = 0;  // computed
  std::uint64_t encoder_tokens = 0;  // computed
  std::uint64_t generated_tokens = 0;
  std::uint64_t finished = 0;
  // The client left.
  std::uint64_t aborted = 0;
  // At this moment.
  std::uint64_t running = 0;
  // At this moment.
  std::uint64_t waiting = 0;
  // Distinct hashes that are held at this moment.
  std::uint64_t blocks_cached = 0;
};

// Simulated engines in this process, with HTTP, events and replay on real sockets. Thread safety:
// any thread may call any method. One thread starts and stops it.
class SimulatedCluster {
 public:
  // Starts the engines and returns when they listen. Errors: InvalidArgument (settings, model
  // directory), Unavailable (a port is taken).
  static Result<std::unique_ptr<SimulatedCluster>> start(const SimulateSettings& settings);
  struct State;
  explicit SimulatedCluster(std::unique_ptr<State> state);
  // Ends running requests without an answer, and joins all threads.
  ~SimulatedCluster();

  // `engine` counts from 0 and must be below size(). counters() waits for the thread of the engine,
  // so do
  // not call it there.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] const EngineAddresses& endpoints(std::size_t engine) const;
  [[nodiscard]] EngineCounters counters(std::size_t engine) const;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace sightline::cluster
