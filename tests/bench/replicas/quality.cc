// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// Compares the decisions of three routers with those of one: `decision_quality [TRACE [SEEDS]]`.
// TRACE is a file in Mooncake's form. Without it, the program makes up conversations. It prints the
// method and tables.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/replicas/simulation.h"

namespace sightline::quality {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kSeeds = 10;
constexpr double kLoads[] = {0.50, 0.80, 0.95};
constexpr double kUsualLoad = 0.80;
// The times of the published trace are multiples of this step.
constexpr Duration kTraceStep = std::chrono::seconds(3);
// The sum of the runs with all seeds.
struct Sum {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t hit_tokens = 0;
  std::vector<Duration> first_token;  // ascending
  double imbalance_s = 0;

  [[nodiscard]] double hit_share() const {
    return static_cast<double>(hit_tokens) / static_cast<double>(prompt_tokens);
  }
  [[nodiscard]] double seconds_at(double share) const {
    const auto at = static_cast<std::size_t>(share * static_cast<double>(first_token.size() - 1));
    return std::chrono::duration<double>(first_token[at]).count();
  }
};

struct Row {
  std::string name;
  Scenario scenario;
};

class Comparison {
 public:
  Comparison(const Trace& trace, std::uint64_t seeds, bool is_stepped) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      traces_.push_back(is_stepped ? spread_over(trace, kTraceStep, seed) : trace);
    }
  }

  [[nodiscard]] double speed_of(double load, const Scenario& scenario = {}) const {
    return speed_for(traces_.front(), scenario, load);
  }

  [[nodiscard]] Sum run(Scenario scenario) const {
    Sum sum;
    for (std::size_t i = 0; i < traces_.size(); ++i) {
      scenario.seed = i + 1;
      const Outcome outcome = simulate(traces_[i], scenario);
      if (!outcome.indexes_equal_engines || !outcome.load_is_zero) {
        std::fputs("a router's view at the end is not the truth\n", stderr);
        std::exit(1);
      }
      sum.prompt_tokens += outcome.prompt_tokens;
      sum.hit_tokens += outcome.hit_tokens;
      sum.imbalance_s += outcome.imbalance_s / static_cast<double>(traces_.size());
      sum.first_token.insert(sum.first_token.end(), outcome.first_token.begin(),
                             outcome.first_token.end());
    }
    std::sort(sum.first_token.begin(), sum.first_token.end());
    return sum;
  }

  // Prints the rows and compares them with the first one.
  void print(const std::vector<Row>& rows) const {
    std::puts(
        "| | hit tokens | of one router's | first token p50 | p99 | p99 of one router's |"
        " fullest engine beyond the mean |\n|---|---|---|---|---|---|---|");
    Sum one;
    for (const Row& row : rows) {
      Sum sum = run(row.scenario);
      if (one.first_token.empty()) one = sum;
      std::printf("| %s | %.2f %% | %.2f %% | %.2f s | %.2f s | %.3f | %.2f s |\n",
                  row.name.c_str(), 100 * sum.hit_share(), 100 * sum.hit_share() / one.hit_share(),
                  sum.seconds_at(0.5), sum.seconds_at(0.99),
                  sum.seconds_at(0.99) / one.seconds_at(0.99), sum.imbalance_s);
      std::fflush(stdout);
    }
    std::puts("");
  }

 private:
  std::vector<Trace> traces_;
};

Scenario one_router(double speed) {
  Scenario scenario;
  scenario.speed = speed;
  return scenario;
}

Scenario replicas(double speed, std::uint32_t routers = 3) {
  Scenario scenario = one_router(speed);
  scenario.routers = routers;
  scenario.shares_load = true;
  return scenario;
}

void compare_loads(const Comparison& comparison) {
  for (const double load : kLoads) {
    const double speed = comparison.speed_of(load);
    std::printf("\n%.0f %% of capacity (the trace at %.2f times its speed):\n\n", 100 * load,
                speed);
    Scenario alone = replicas(speed);
    alone.shares_load = false;
    comparison.print({{"one router", one_router(speed)},
                      {"two, load shared", replicas(speed, 2)},
                      {"three, load shared", replicas(speed)},
                      {"five, load shared", replicas(speed, 5)},
                      {"three, load not shared", alone}});
  }
}

void compare_delays(const Comparison& comparison) {
  const double speed = comparison.speed_of(kUsualLoad);
  std::vector<Row> rows = {{"one router", one_router(speed)}};
  for (const int delay : {1, 20, 100, 500, 2'000}) {
    rows.push_back({"load after " + std::to_string(delay) + " ms", replicas(speed)});
    rows.back().scenario.load_delay = milliseconds(delay);
  }
  for (const int delay : {20, 100, 500, 2'000}) {
    rows.push_back({"events after " + std::to_string(delay) + " ms", replicas(speed)});
    rows.back().scenario.event_delay = milliseconds(delay);
  }
  for (const int percent : {10, 50}) {
    rows.push_back({std::to_string(percent) + " % of the messages on load lost", replicas(speed)});
    rows.back().scenario.load_loss = percent / 100.0;
  }
  std::printf("\nThree routers, load shared, %.0f %% of capacity, other delays:\n\n",
              100 * kUsualLoad);
  comparison.print(rows);
}

// Compares the same trace with more engines, and with engines that have more room.
void compare_fleets(const Comparison& comparison) {
  Scenario many;
  many.engines = 64;
  Scenario large;
  large.engine.blocks = 8 * large.engine.blocks;
  for (const auto& [name, base] :
       {std::pair("64 engines", many), std::pair("caches 8 times as large", large)}) {
    Scenario one = base;
    one.speed = comparison.speed_of(kUsualLoad, base);
    Scenario three = one;
    three.routers = 3;
    Scenario shared = three;
    shared.shares_load = true;
    Scenario at_once = shared;
    at_once.load_batch = {};
    std::printf("\n%s, %.0f %% of capacity (the trace at %.2f times its speed):\n\n", name,
                100 * kUsualLoad, one.speed);
    comparison.print({{"one router", one},
                      {"three, load shared", shared},
                      {"three, load shared at once", at_once},
                      {"three, load not shared", three}});
  }
}

int run(int count, char** arguments) {
  Trace trace;
  const bool is_given = count > 1;
  if (is_given) {
    std::ifstream file(arguments[1], std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    auto read = parse_trace(text);
    if (!read || read->empty()) {
      std::fprintf(stderr, "%s: %s\n", arguments[1],
                   read ? "no request" : read.error().message.c_str());
      return 2;
    }
    trace = std::move(*read);
  } else {
    trace = conversations({}, 1);
  }
  const std::uint64_t seeds = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : kSeeds;
  const Comparison comparison(trace, seeds, is_given);
  compare_loads(comparison);
  compare_fleets(comparison);
  compare_delays(comparison);
  return 0;
}

}  // namespace
}  // namespace sightline::quality

int main(int count, char** arguments) { return sightline::quality::run(count, arguments); }
