// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <future>

#include <asio/basic_waitable_timer.hpp>
#include <asio/redirect_error.hpp>

#include "common/http/exchange.h"
#include "common/runtime/io_pool.h"

#include "tests/bench/peers/load.h"

namespace sightline::bench {
namespace {

using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr std::chrono::milliseconds kBetweenStarts{1};
constexpr std::chrono::seconds kSettle{1};
constexpr std::chrono::seconds kFlowingWithin{60};

// The state that the streams share.
struct Streams {
  const StreamLoad& load;
  http::Client& client;
  IoPool& pool;
  std::promise<void> flowing{};
  std::promise<void> broken{};
  std::atomic<bool> measuring{false};
  // For the I/O thread only, until it has ended:
  std::size_t without_event = 0;
  bool is_broken = false;
  std::vector<Duration> delays{};
};

// Records the delay of each event whose time mark is whole in the piece. Events are sent whole, so
// only few are cut at the end of a receive buffer.
std::size_t note_events(Streams& streams, std::string_view piece) {
  const Instant now = system_clock().now();
  std::size_t events = 0;
  for (auto at = piece.find(kTimeMark); at != std::string_view::npos;
       at = piece.find(kTimeMark, at + 1)) {
    const auto end = piece.find(kTimeMark, at + 1);
    if (end == std::string_view::npos) break;
    std::int64_t written = 0;
    std::from_chars(piece.data() + at + 1, piece.data() + end, written);
    ++events;
    if (streams.measuring) streams.delays.push_back(now.time_since_epoch() - Duration(written));
    at = end;
  }
  return events;
}

Task<void> follow(Streams& streams, std::size_t turn) {
  Timer timer(streams.pool.context(0));
  timer.expires_after(kBetweenStarts * turn);
  asio::error_code code;
  auto token = asio::redirect_error(use_task, code);
  co_await timer.async_wait(token);
  const std::string_view body = streams.load.body;
  const http::Call call{
      .endpoint = streams.load.to,
      .head = {"POST", "/v1/chat/completions", {{"content-type", "application/json"}}},
      .body = {&body, 1},
      .timeouts = {}};
  http::Exchange exchange(streams.client);
  const auto started = co_await exchange.start(call);
  bool seen = false;
  while (started.ok() && exchange.status() == 200) {
    const auto piece = co_await exchange.read_some();
    if (!piece.ok() || piece->empty()) break;
    const auto events = note_events(streams, *piece);
    if (events == 0 || std::exchange(seen, true)) continue;
    if (--streams.without_event == 0) streams.flowing.set_value();
  }
  if (!std::exchange(streams.is_broken, true)) streams.broken.set_value();
}

void say(const char* word) {
  std::printf("%s\n", word);
  std::fflush(stdout);
}

double micros(Duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace

int run(const StreamLoad& load) {
  IoPool pool({.io_threads = 1, .compute_threads = 1});
  http::Client client(pool, {});
  Streams streams{.load = load, .client = client, .pool = pool};
  streams.without_event = load.streams;
  for (std::size_t i = 0; i < load.streams; ++i) {
    spawn(pool.context(0).get_executor(), follow(streams, i));
  }
  auto broken = streams.broken.get_future();
  const bool all_flow =
      streams.flowing.get_future().wait_for(kFlowingWithin) == std::future_status::ready &&
      broken.wait_for(kSettle) == std::future_status::timeout;
  bool whole = all_flow;
  if (all_flow) {
    streams.measuring = true;
    say("begin");
    whole = broken.wait_for(load.time) == std::future_status::timeout;
    say("end");
    streams.measuring = false;
  }
  pool.stop();
  if (!whole) {
    std::fprintf(stderr, "%s\n", all_flow ? "a stream broke off" : "the streams do not flow");
    return 1;
  }
  const auto events = streams.delays.size();
  std::printf("{\"events\":%zu,\"delay_us\":{\"p50\":%.1f,\"p99\":%.1f}}\n", events,
              micros(quantile(streams.delays, 0.5)), micros(quantile(streams.delays, 0.99)));
  return events > 0 ? 0 : 1;
}

}  // namespace sightline::bench
