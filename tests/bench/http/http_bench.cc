// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// CPU time of a bare proxy per request. Client, proxy and upstream run on one I/O thread each. Only
// the proxy's thread is counted. `bench_http UPSTREAM_PORT PROXY_PORT PID` loads another proxy
// instead. That proxy listens on PROXY_PORT, forwards to UPSTREAM_PORT and runs in the process PID.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/exchange.h"
#include "common/http/server.h"

#include "tests/support/thread_time.h"

namespace sightline::http {
namespace {

struct Workload {
  const char* name;
  std::size_t connections;
  std::size_t requests;  // of each connection
  std::size_t request_bytes;
  std::size_t events;  // of the answer, each with its own write
  std::size_t event_bytes;
};

constexpr Workload kWorkloads[] = {
    {"2 KB request, 2 KB answer, c=1", 1, 3000, 2048, 0, 2048},
    {"2 KB request, 2 KB answer, c=32", 32, 300, 2048, 0, 2048},
    {"2 KB request, 200 events, c=1", 1, 200, 2048, 200, 204},
    {"2 KB request, 200 events, c=32", 32, 20, 2048, 200, 204},
    {"163 KB request, 2 KB answer, c=32", 32, 60, 163U << 10U, 0, 2048},
    {"923 KB request, 2 KB answer, c=32", 32, 20, 923U << 10U, 0, 2048},
};

// The target says what the upstream must answer: /events/bytes.
Task<void> answer(Request& request, ResponseWriter& writer) {
  std::size_t events = 0;
  std::size_t bytes = 0;
  std::sscanf(request.target.c_str(), "/%zu/%zu", &events, &bytes);
  const std::string text(bytes, 'x');
  if (events == 0) {
    Response response;
    response.body = text;
    const auto sent = co_await writer.send(std::move(response));
    static_cast<void>(sent);
    co_return;
  }
  Headers headers{{"content-type", "text/event-stream"}};
  auto result = co_await writer.begin(200, std::move(headers));
  for (std::size_t i = 0; i < events && result.ok(); ++i) result = co_await writer.write(text);
  const auto finished = co_await writer.finish();
  static_cast<void>(finished);
}

Task<void> relay(Client& client, const ServerAddress& upstream, Request& request,
                 ResponseWriter& writer) {
  Exchange exchange(client);
  writer.on_disconnect([&exchange] { exchange.cancel(); });
  const std::string_view body = request.body;
  const Call call{.endpoint = upstream,
                  .head = {request.method, request.target, end_to_end(request.headers)},
                  .body = {&body, 1},
                  .timeouts = {}};
  const auto started = co_await exchange.start(call);
  if (!started.ok()) co_return;
  auto written = co_await writer.begin(exchange.status(), end_to_end(exchange.headers()));
  while (written.ok()) {
    const auto piece = co_await exchange.read_some();
    if (!piece.ok()) co_return;
    if (piece->empty()) break;
    written = co_await writer.write(*piece);
  }
  const auto finished = co_await writer.finish();
  static_cast<void>(finished);
}

Task<void> load(Client& client, const ServerAddress& to, const Workload& workload,
                const std::function<void()>& done) {
  const std::string text(workload.request_bytes, 'x');
  const std::string_view body = text;
  const Call call{
      .endpoint = to,
      .head = {"POST",
               "/" + std::to_string(workload.events) + "/" + std::to_string(workload.event_bytes),
               {{"content-type", "application/json"}, {"authorization", "Bearer k"}}},
      .body = {&body, 1},
      .timeouts = {}};
  const auto want_bytes = std::max<std::size_t>(workload.events, 1) * workload.event_bytes;
  for (std::size_t i = 0; i < workload.requests; ++i) {
    Exchange exchange(client);
    const auto started = co_await exchange.start(call);
    const auto answered = co_await read_all(exchange, want_bytes);
    if (!started.ok() || !answered.ok() || answered->size() != want_bytes) {
      std::fprintf(stderr, "a request failed\n");
      std::exit(1);
    }
  }
  done();
}

std::chrono::nanoseconds thread_cpu(IoPool& pool) {
  std::promise<std::chrono::nanoseconds> used;
  asio::post(pool.context(0), [&used] { used.set_value(test::thread_time()); });
  return used.get_future().get();
}

std::chrono::nanoseconds process_cpu(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  std::int64_t nanoseconds = 0;
  file >> nanoseconds;
  return std::chrono::nanoseconds(nanoseconds);
}

void run(const Workload& workload, IoPool& clients, const ServerAddress& proxy,
         const std::function<std::chrono::nanoseconds()>& cpu) {
  Client client(clients, {});
  const auto pass = [&](const Workload& part) {
    std::promise<void> finished;
    std::size_t left = part.connections;
    const std::function<void()> done = [&] {
      if (--left == 0) finished.set_value();
    };
    for (std::size_t i = 0; i < part.connections; ++i) {
      spawn(clients.context(0).get_executor(), load(client, proxy, part, done));
    }
    finished.get_future().wait();
  };
  auto warm = workload;
  warm.requests = std::max<std::size_t>(1, workload.requests / 10);
  pass(warm);
  const auto cpu_before = cpu();
  const auto begin = std::chrono::steady_clock::now();
  pass(workload);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  const std::chrono::duration<double, std::micro> used = cpu() - cpu_before;
  const auto requests = static_cast<double>(workload.connections * workload.requests);
  std::printf("%-36s %9.1f us CPU/request", workload.name, used.count() / requests);
  if (workload.events > 0) {
    std::printf(" %6.2f us/event", used.count() / requests / static_cast<double>(workload.events));
  }
  std::printf(" %9.0f requests/s\n", requests / wall.count());
  client.forget(proxy);
  thread_cpu(clients);  // closes the connections before the client ends
}

std::uint16_t number(const char* text) { return static_cast<std::uint16_t>(std::atoi(text)); }

int compare(char** arguments) {
  const IoPoolOptions one_thread{};
  IoPool upstreams(one_thread);
  IoPool clients(one_thread);
  const auto upstream = Server::create(upstreams, {.port = number(arguments[1])}, answer);
  if (!upstream.ok()) {
    std::fprintf(stderr, "%s\n", upstream.error().message.c_str());
    return 1;
  }
  const int pid = std::atoi(arguments[3]);
  const ServerAddress proxy{"127.0.0.1", number(arguments[2])};
  for (const auto& workload : kWorkloads) {
    run(workload, clients, proxy, [pid] { return process_cpu(pid); });
  }
  clients.stop();
  return 0;
}

int measure() {
  const IoPoolOptions one_thread{};
  IoPool upstreams(one_thread);
  IoPool proxies(one_thread);
  IoPool clients(one_thread);
  const auto upstream = Server::create(upstreams, {}, answer);
  Client to_upstream(proxies, {});
  const ServerAddress upstream_at{"127.0.0.1", (*upstream)->port()};
  const Responder forward = [&](Request& request, ResponseWriter& writer) {
    return relay(to_upstream, upstream_at, request, writer);
  };
  const auto proxy = Server::create(proxies, {}, forward);
  for (const auto& workload : kWorkloads) {
    run(workload, clients, {"127.0.0.1", (*proxy)->port()}, [&] { return thread_cpu(proxies); });
  }
  clients.stop();
  (*proxy)->drain(Duration::zero());
  proxies.stop();
  return 0;
}

}  // namespace
}  // namespace sightline::http

int main(int count, char** arguments) {
  const bool other_proxy = count == 4 && arguments[1][0] != '-';
  return other_proxy ? sightline::http::compare(arguments) : sightline::http::measure();
}
