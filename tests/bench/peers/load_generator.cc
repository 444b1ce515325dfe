// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// Makes the load to compare routers. tests/bench/peers/run starts one of:
//   load_generator requests PORT CONNECTIONS SECONDS EXPECT   bodies: lines of standard input
//   load_generator streams PORT STREAMS SECONDS               body: standard input
//   load_generator engine INTERVAL_MS EVENTS [COUNT METRICS_FILE]

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "tests/bench/peers/load.h"

namespace sightline::bench {
namespace {

http::ServerAddress at_port(const char* text) {
  return {"127.0.0.1", static_cast<std::uint16_t>(std::atoi(text))};
}

std::size_t number(const char* text) { return static_cast<std::size_t>(std::atoll(text)); }

Duration seconds(const char* text) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::atof(text)));
}

std::vector<std::string> lines_of_input() {
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  return lines;
}

int choose(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "requests" && count == 6) {
    RequestLoad load{.to = at_port(arguments[2]),
                     .bodies = lines_of_input(),
                     .connections = number(arguments[3]),
                     .time = seconds(arguments[4]),
                     .expect = arguments[5]};
    if (!load.bodies.empty() && load.connections > 0) return run(load);
  }
  if (what == "streams" && count == 5) {
    const auto lines = lines_of_input();
    if (!lines.empty()) {
      return run(StreamLoad{.to = at_port(arguments[2]),
                            .body = lines.front(),
                            .streams = number(arguments[3]),
                            .time = seconds(arguments[4])});
    }
  }
  if (what == "engine" && (count == 4 || count == 6)) {
    PacedEngine engine{.interval = std::chrono::milliseconds(number(arguments[2])),
                       .events = number(arguments[3])};
    if (count == 6) {
      engine.count = number(arguments[4]);
      std::ifstream file(arguments[5]);
      engine.metrics.assign(std::istreambuf_iterator<char>(file), {});
    }
    return run(engine);
  }
  std::fprintf(stderr, "usage: see the beginning of load_generator.cc\n");
  return 2;
}

}  // namespace
}  // namespace sightline::bench

int main(int count, char** arguments) { return sightline::bench::choose(count, arguments); }
