// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "common/http/server.h"

#include "tests/fakes/raw_socket.h"
#include "tests/fakes/run_task.h"

namespace sightline::http {

using fakes::eventually;
using fakes::RawSocket;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr std::string_view kGet = "GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n";

class ServerTest : public testing::Test {
 protected:
  void start(Responder handler, const ServerLimits& limits = {}) {
    auto server = Server::create(pool_, {.limits = limits}, std::move(handler));
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(server).value();
  }
  // Answers with the method, target and body of the request.
  void start_echo(const ServerLimits& limits = {}) {
    auto echo = [](Request& request, ResponseWriter& writer) -> Task<void> {
      Response response;
      response.body = request.method + " " + request.target + " " + request.body;
      const auto sent = co_await writer.send(std::move(response));
      static_cast<void>(sent);
    };
    start(std::move(echo), limits);
  }
  RawSocket connect() { return RawSocket::connect(server_->port()); }

  IoPool pool_{{.io_threads = 2, .compute_threads = 1}};
  std::unique_ptr<Server> server_;
};

inline std::string post(std::string_view body) {
  return "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}

// Waits for the disconnect and notifies the test. Its handler may run on after the test has ended:
// requests that a client left behind begin after its disconnect was noticed.
struct Departure {
  struct Seen {
    std::atomic<bool> waiting = false;
    std::atomic<bool> noticed = false;
  };
  std::shared_ptr<Seen> seen = std::make_shared<Seen>();

  [[nodiscard]] Responder handler() const {
    return [seen = seen](Request&, ResponseWriter& writer) -> Task<void> {
      Gate gone;
      writer.on_disconnect([&gone] { gone.open(); });
      seen->waiting = true;
      co_await gone.wait();
      seen->noticed = true;
      EXPECT_TRUE(writer.disconnected() != writer.cut_off());
    };
  }
};

}  // namespace sightline::http
