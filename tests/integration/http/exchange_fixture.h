// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/http/exchange.h"
#include "common/runtime/worker_thread.h"

#include "tests/fakes/raw_socket.h"
#include "tests/fakes/run_task.h"

namespace sightline::http {

using fakes::RawListener;
using fakes::run_task;

// The results of one exchange.
struct Outcome {
  bool started = false;
  int status = 0;
  Headers headers;
  std::string body;
  bool whole = false;
  std::size_t pieces = 0;
  Failure failure = Failure::None;
  bool response_begun = false;
  bool kept_closed = false;
  bool refused = false;
  std::optional<Error> error;
};

class ExchangeTest : public testing::Test {
 protected:
  void TearDown() override { pool_.stop(); }

  // Runs the script in a thread, for one connection after the other.
  void serve(std::function<void(RawListener&)> script) {
    server_.emplace("upstream", [this, script = std::move(script)](const std::stop_token&) {
      script(listener_);
    });
  }

  Call call() {
    return {.endpoint = {.host = "127.0.0.1", .port = listener_.port()},
            .head = {.method = "POST", .target = "/v1", .headers = {{"x-a", "b"}}},
            .body = body_,
            .timeouts = {}};
  }

  Task<void> converse(const Call& call, Outcome& outcome) {
    Exchange exchange(client_);
    const auto started = co_await exchange.start(call);
    outcome.started = started.ok();
    if (!started.ok()) outcome.error = started.error();
    if (started.ok()) {
      outcome.status = exchange.status();
      outcome.headers = exchange.headers();
    }
    while (started.ok()) {
      const auto piece = co_await exchange.read_some();
      if (!piece.ok()) {
        outcome.error = piece.error();
        break;
      }
      outcome.whole = piece->empty();
      if (piece->empty()) break;
      outcome.body += *piece;
      ++outcome.pieces;
    }
    outcome.failure = exchange.failure();
    outcome.response_begun = exchange.response_begun();
    outcome.kept_closed = exchange.kept_connection_closed();
    outcome.refused = exchange.connection_refused();
  }

  Outcome run(const Call& call) {
    Outcome outcome;
    run_task(pool_, [&]() -> Task<void> { return converse(call, outcome); });
    return outcome;
  }

  // The result of a server that reads the request, sends these bytes and closes.
  Outcome answer_with(std::string bytes) {
    serve([bytes = std::move(bytes)](RawListener& listener) {
      auto socket = listener.accept();
      socket.receive_until("body");
      socket.send(bytes);
    });
    auto outcome = run(call());
    server_.reset();
    return outcome;
  }

  const std::vector<std::string_view> body_{"bo", "", "dy"};
  RawListener listener_;
  IoPool pool_{{}};
  Client client_{pool_, {}};
  std::optional<WorkerThread> server_;
};

}  // namespace sightline::http
