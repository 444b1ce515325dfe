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

// Each paced event has the time of its writing between two of these marks, in monotonic
// nanoseconds. All processes of a machine share this clock.
inline constexpr char kTimeMark = '@';

// Sends requests one after the other on each connection until the time is over. If no time is set,
// sends each body once.
struct RequestLoad {
  http::ServerAddress to;
  std::vector<std::string> bodies;  // used in turn
  std::size_t connections = 1;
  Duration time{};
  std::string expect;  // text in every answer, whose status must be 200
};
// Prints one JSON line: requests, and the times to first byte and to the end. Returns nonzero if an
// answer was wrong.
int run(const RequestLoad& load);

// Reads many streams at the same time from a paced engine, perhaps through a router.
struct StreamLoad {
  http::ServerAddress to;
  std::string body;
  std::size_t streams = 1;
  Duration time{};  // measured after all streams have begun
};
// Prints "begin" and "end" around the measured time, then one JSON line: events, and their delays
// after their writing. Returns nonzero if a stream broke off.
int run(const StreamLoad& load);

// Runs engines whose answers are streams of events at a steady pace.
struct PacedEngine {
  Duration interval{};     // between the events of a stream
  std::size_t events = 0;  // of a stream
  std::size_t count = 1;
  std::string metrics;  // their answer to /metrics
};
// Prints "ready PORT…". Ends with its standard input.
int run(const PacedEngine& engine);

// Sorts the samples. Returns the value that a share of them, from 0 to 1, does not exceed.
Duration quantile(std::vector<Duration>& samples, double share);

}  // namespace sightline::bench
