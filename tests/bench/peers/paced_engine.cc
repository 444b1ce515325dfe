// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <asio/basic_waitable_timer.hpp>
#include <asio/redirect_error.hpp>

#include "common/http/server.h"
#include "common/runtime/io_pool.h"

#include "tests/bench/peers/load.h"

namespace sightline::bench {
namespace {

using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr std::string_view kModels =
    R"({"object":"list","data":[{"id":"demo","object":"model","owned_by":"vllm"}]})";
// The form of a token's event in vLLM, about 200 bytes.
constexpr std::string_view kBeforeTime =
    R"(data: {"id":"chatcmpl-0123456789abcdef0123456789abcdef","object":"chat.completion.chunk",)"
    R"("created":1760000000,"model":"demo","choices":[{"index":0,"delta":{"content":")";
constexpr std::string_view kAfterTime =
    "\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n";
// Spreads streams that begin together over the interval. Otherwise their events would coincide.
constexpr std::uint64_t kSpreadSteps = 997;

std::string event_now() {
  const auto now = std::to_string(system_clock().now().time_since_epoch().count());
  std::string event(kBeforeTime);
  event += kTimeMark;
  event += now;
  event += kTimeMark;
  event += kAfterTime;
  return event;
}

Task<void> stream(const PacedEngine& engine, IoPool& pool, http::ResponseWriter& writer) {
  static std::atomic<std::uint64_t> turn{0};
  http::Headers headers{{"content-type", "text/event-stream; charset=utf-8"}};
  auto sent = co_await writer.begin(200, std::move(headers));
  Timer timer(pool.context(0));
  const auto phase = turn.fetch_add(1) * 389 % kSpreadSteps;
  Instant next = system_clock().now() + engine.interval * phase / kSpreadSteps;
  for (std::size_t i = 0; i < engine.events && sent.ok(); ++i, next += engine.interval) {
    timer.expires_at(std::chrono::time_point_cast<Timer::duration>(next));
    asio::error_code code;
    auto token = asio::redirect_error(use_task, code);
    co_await timer.async_wait(token);
    const std::string event = event_now();
    sent = co_await writer.write(event);
  }
  static constexpr std::string_view kDone = "data: [DONE]\n\n";
  if (sent.ok()) sent = co_await writer.write(kDone);
  if (sent.ok()) sent = co_await writer.finish();
}

Task<void> answer(const PacedEngine& engine, IoPool& pool, http::Request& request,
                  http::ResponseWriter& writer) {
  if (request.method == "POST") {
    co_await stream(engine, pool, writer);
    co_return;
  }
  http::Response response;
  if (request.path() == "/v1/models") response.body = kModels;
  if (request.path() == "/metrics") response.body = engine.metrics;
  if (request.path() == "/kv_event_sources") response.status = 404;
  const auto sent = co_await writer.send(std::move(response));
  static_cast<void>(sent);
}

}  // namespace

int run(const PacedEngine& engine) {
  IoPool pool({.io_threads = 1, .compute_threads = 1});
  std::vector<std::unique_ptr<http::Server>> servers;
  const auto handler = [&](http::Request& request, http::ResponseWriter& writer) {
    return answer(engine, pool, request, writer);
  };
  std::string ports = "ready";
  for (std::size_t i = 0; i < engine.count; ++i) {
    auto server = http::Server::create(pool, {}, handler);
    if (!server.ok()) {
      std::fprintf(stderr, "%s\n", server.error().message.c_str());
      return 1;
    }
    ports += " " + std::to_string((*server)->port());
    servers.push_back(std::move(*server));
  }
  std::printf("%s\n", ports.c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  for (const auto& server : servers) server->drain(Duration::zero());
  pool.stop();
  return 0;
}

}  // namespace sightline::bench
