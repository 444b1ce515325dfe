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
  std::uint64_t in_flight = 0;  // requests of the routers on it
  std::uint64_t running = 0;    // as the engine tells
  std::uint64_t waiting = 0;
  std::uint64_t blocks = 0;                    // known to be held
  std::optional<std::uint64_t> lag_ms;         // of its events
  std::optional<std::uint64_t> digest_age_ms;  // since its agent's digest was equal, oldest rank
};

struct MemberCounts {
  std::uint64_t routers = 0;  // others that fit
  std::uint64_t frontends = 0;
  std::uint64_t agents = 0;
  std::uint64_t unfit = 0;
};

// What one admin port tells.
struct RouterFacts {
  std::string address;
  std::string trouble;  // why nothing is known; empty: all of the following is
  bool is_ready = false;
  std::string list_source;  // "push", "peers", "file", "none"
  std::uint64_t generation = 0;
  std::uint64_t active = 0;  // requests
  // Counted since its start.
  double requests = 0;
  double overlap_blocks = 0;
  double prompt_blocks = 0;
  // Since the last look; nothing at the first.
  std::optional<double> requests_per_s;
  std::optional<double> hit_ratio;        // of blocks; at the first look since its start
  std::optional<bool> is_nats_connected;  // nothing: it uses none
  std::optional<MemberCounts> members;    // likewise
  std::vector<WorkerFacts> workers;
};

// Bodies of an admin port's answers. Empty: there is no such route.
struct Answers {
  bool is_ready = false;
  std::string workers;   // GET /v1/workers
  std::string replicas;  // GET /v1/replicas
  std::string metrics;   // GET /metrics
};

// Errors: Corrupt, if an answer is none of an admin port of sightline. Pure.
Result<RouterFacts> read_facts(std::string_view address, const Answers& answers);

// Fills in what follows from two looks. before: null at the first one.
void compare(RouterFacts& now, const RouterFacts* before, double seconds);

// Printable ASCII, other bytes as '?': what a port says must not steer the terminal.
std::string printable(std::string_view text);

}  // namespace sightline::top
