// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace sightline::top {

// One worker as one router sees it. Texts are printable ASCII.
struct WorkerFacts {
  std::string name;
  std::string state;
  std::string reason;
  bool is_ready = false;
  // Requests of the routers on it.
  std::uint64_t in_flight = 0;
  // Requests that the engine reports as running and waiting.
  std::uint64_t running = 0;
  std::uint64_t waiting = 0;
  // Blocks in the router's index.
  std::uint64_t blocks = 0;
  // The lag of its events, of the rank with the greatest lag.
  std::optional<std::uint64_t> lag_ms;
  // The time since its agent's digest was equal, of the oldest rank.
  std::optional<std::uint64_t> digest_age_ms;
};

// The other processes of the deployment that a router knows.
struct MemberCounts {
  // Other routers, not the one that reports.
  std::uint64_t routers = 0;
  std::uint64_t frontends = 0;
  std::uint64_t agents = 0;
  // Members of any role that do not fit.
  std::uint64_t unfit = 0;
};

// What one admin port reports. A frontend has no workers.
struct RouterFacts {
  std::string address;
  // Why nothing is known. Empty: all fields below are known.
  std::string trouble;
  bool is_ready = false;
  // Where the worker list comes from: `push`, `peers`, `file`, `none`.
  std::string list_source;
  // The generation of the worker list.
  std::uint64_t generation = 0;
  // Running requests.
  std::uint64_t active = 0;
  // Counted since the start of the process.
  double requests = 0;
  double overlap_blocks = 0;
  double prompt_blocks = 0;
  // Since the last look. Empty at the first look.
  std::optional<double> requests_per_s;
  // The share of prompt blocks expected in caches. At the first look: since the process started.
  std::optional<double> hit_ratio;
  // Empty: the process does not use NATS. True only if all its connections are up.
  std::optional<bool> is_nats_connected;
  // Empty: the process does not use NATS.
  std::optional<MemberCounts> members;
  std::vector<WorkerFacts> workers;
};

// The bodies of an admin port's answers. Empty if the port does not have the route.
struct Answers {
  bool is_ready = false;
  std::string workers;   // GET /v1/workers
  std::string replicas;  // GET /v1/replicas
  std::string metrics;   // GET /metrics
};

// Reads one port's answers. Error: Corrupt if an answer is not from an admin port of sightline.
// Pure.
Result<RouterFacts> read_facts(std::string_view address, const Answers& answers);

// Computes the fields that need two looks, `seconds` apart. before: null at the first look.
void compare(RouterFacts& now, const RouterFacts* before, double seconds);

// Returns printable ASCII, with '?' for each other byte. Text from a port must not control the
// terminal.
std::string printable(std::string_view text);

}  // namespace sightline::top
