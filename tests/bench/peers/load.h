// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/http/client.h"

namespace sightline::bench {

// The text in every paced event before and after the time it was written, in monotonic
// nanoseconds: one clock for all processes of a machine.
inline constexpr char kTimeMark = '@';

// Requests one after the other on each connection, until the time is over, or each body once if no
// time is set.
struct RequestLoad {
  http::ServerAddress to;
  std::vector<std::string> bodies;  // used in turn
  std::size_t connections = 1;
  Duration time{};
  std::string expect;  // every answer has status 200 and contains this
};
// Prints one JSON line: requests, and the times to first byte and to the end. Nonzero if an answer
// was wrong.
int run(const RequestLoad& load);

// Many streams at once from a paced engine, perhaps through a router.
struct StreamLoad {
  http::ServerAddress to;
  std::string body;
  std::size_t streams = 1;
  Duration time{};  // measured, after all streams flow
};
// Prints "begin" and "end" around the measured time, then one JSON line: events, and how long
// after they were written they came. Nonzero if a stream broke off.
int run(const StreamLoad& load);

// Engines whose answers are streams of events at a steady pace.
struct PacedEngine {
  Duration interval{};     // between the events of a stream
  std::size_t events = 0;  // of a stream
  std::size_t count = 1;
  std::string metrics;  // what they answer at /metrics
};
// Prints "ready PORT…"; ends with its standard input.
int run(const PacedEngine& engine);

// Sorts the samples; the value that a share of them, 0 to 1, does not exceed.
Duration quantile(std::vector<Duration>& samples, double share);

}  // namespace sightline::bench
