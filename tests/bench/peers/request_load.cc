// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <future>

#include "common/http/exchange.h"
#include "common/runtime/io_pool.h"

#include "tests/bench/peers/load.h"

namespace sightline::bench {
namespace {

// Upper limits of the printed histogram of times to first byte, in milliseconds. Delayed
// acknowledgements together with Nagle's algorithm show between 30 and 60.
constexpr std::array<int, 7> kBucketsMs = {1, 2, 5, 10, 30, 60, 1'000'000};

struct Samples {
  std::vector<Duration> first_byte;
  std::vector<Duration> whole;
  std::size_t wrong = 0;
};

// Sends one request. Returns false if its answer is wrong.
Task<bool> ask(http::Client& client, const RequestLoad& load, std::string_view body,
               Samples& samples) {
  const http::Call call{
      .endpoint = load.to,
      .head = {"POST",
               "/v1/chat/completions",
               {{"content-type", "application/json"}, {"authorization", "Bearer benchmark"}}},
      .body = {&body, 1},
      .timeouts = {}};
  http::Exchange exchange(client);
  const Instant start = system_clock().now();
  const auto started = co_await exchange.start(call);
  if (!started.ok() || exchange.status() != 200) co_return false;
  std::string answer;
  for (;;) {
    const auto piece = co_await exchange.read_some();
    if (!piece.ok()) co_return false;
    if (answer.empty()) samples.first_byte.push_back(system_clock().now() - start);
    if (piece->empty()) break;
    answer += *piece;
  }
  samples.whole.push_back(system_clock().now() - start);
  co_return answer.find(load.expect) != std::string::npos;
}

Task<void> keep_asking(http::Client& client, const RequestLoad& load, std::size_t first,
                       std::function<void(const Samples&)> done) {
  Samples samples;
  const Instant stop = system_clock().now() + load.time;
  const bool once = load.time == Duration::zero();
  const auto goes_on = [&](std::size_t turn) {
    return once ? turn < load.bodies.size() : system_clock().now() < stop;
  };
  for (auto turn = first; goes_on(turn) && samples.wrong == 0; turn += load.connections) {
    const bool right = co_await ask(client, load, load.bodies[turn % load.bodies.size()], samples);
    if (!right) ++samples.wrong;
  }
  done(samples);
}

double micros(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

void print(Samples& samples) {
  std::printf("{\"requests\":%zu,\"wrong\":%zu,", samples.whole.size(), samples.wrong);
  std::printf("\"first_byte_us\":{\"p50\":%.1f,\"p99\":%.1f},",
              micros(quantile(samples.first_byte, 0.5)),
              micros(quantile(samples.first_byte, 0.99)));
  std::printf("\"whole_us\":{\"p50\":%.1f,\"p99\":%.1f},\"first_byte_ms\":{",
              micros(quantile(samples.whole, 0.5)), micros(quantile(samples.whole, 0.99)));
  auto from = samples.first_byte.begin();
  for (const int bucket : kBucketsMs) {
    const auto to = std::upper_bound(from, samples.first_byte.end(),
                                     Duration(std::chrono::milliseconds(bucket)));
    std::printf("%s\"%d\":%td", bucket == kBucketsMs.front() ? "" : ",", bucket, to - from);
    from = to;
  }
  std::printf("}}\n");
}

}  // namespace

Duration quantile(std::vector<Duration>& samples, double share) {
  if (samples.empty()) return Duration::zero();
  std::sort(samples.begin(), samples.end());
  return samples[static_cast<std::size_t>(static_cast<double>(samples.size() - 1) * share)];
}

int run(const RequestLoad& load) {
  IoPool pool({.io_threads = 1, .compute_threads = 1});
  http::Client client(pool, {});
  Samples all;
  std::promise<void> finished;
  std::size_t left = load.connections;
  const auto done = [&](const Samples& samples) {
    all.first_byte.insert(all.first_byte.end(), samples.first_byte.begin(),
                          samples.first_byte.end());
    all.whole.insert(all.whole.end(), samples.whole.begin(), samples.whole.end());
    all.wrong += samples.wrong;
    if (--left == 0) finished.set_value();
  };
  for (std::size_t i = 0; i < load.connections; ++i) {
    spawn(pool.context(0).get_executor(), keep_asking(client, load, i, done));
  }
  finished.get_future().wait();
  pool.stop();
  print(all);
  return all.wrong == 0 && !all.whole.empty() ? 0 : 1;
}

}  // namespace sightline::bench
