// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/admin_server.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/contract/metrics_requests.h"

#include "tests/support/eventually.h"
#include "tests/support/loopback.h"

namespace sightline::runtime {
namespace {

using test::exchange_bytes;
using test::http_exchange;
using test::HttpAnswer;
using test::send_and_leave;

class AdminServerTest : public testing::Test {
 protected:
  AdminServerTest() : server_({.port = 0, .body_bytes_max = 1000}, metrics_) {}

  void start() { ASSERT_TRUE(server_.start().ok()); }
  HttpAnswer get(const std::string& target) { return http_exchange(server_.port(), "GET", target); }

  Metrics metrics_;
  AdminServer server_;
};

TEST_F(AdminServerTest, HealthIsOkAsLongAsTheServerRuns) {
  start();
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/healthz").body, "ok\n");
}

TEST_F(AdminServerTest, ReadinessFollowsTheChecksAndListsThemOnRequest) {
  std::atomic<bool> is_loaded = false;
  server_.add_check("listening", [] { return Result<Done>(Done{}); });
  server_.add_check("model", [&is_loaded]() -> Result<Done> {
    if (is_loaded) return Done{};
    return internal_error("still loading");
  });
  start();
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/readyz").body, "not ready\n");
  EXPECT_EQ(get("/readyz?verbose").body, "[+] listening\n[-] model: still loading\nnot ready\n");
  is_loaded = true;
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_EQ(get("/readyz?verbose").body, "[+] listening\n[+] model\nready\n");
}

TEST_F(AdminServerTest, ReadinessLeavesOutTheChecksThatAreExcluded) {
  for (const char* name : {"model", "engines"}) {
    server_.add_check(name, [] { return Result<Done>(internal_error("no")); });
  }
  server_.add_check("listening", [] { return Result<Done>(Done{}); });
  start();
  EXPECT_EQ(get("/readyz?exclude=engines").status, 503);
  const HttpAnswer both = get("/readyz?exclude=engines&exclude=model&verbose");
  EXPECT_EQ(both.status, 200);
  EXPECT_EQ(both.body, "[+] model excluded\n[+] engines excluded\n[+] listening\nready\n");
  const HttpAnswer unknown =
      get("/readyz?exclude=engines&exclude=model&exclude=x%22&exclude&verbose");
  EXPECT_EQ(unknown.status, 200);
  EXPECT_NE(
      unknown.body.find("[+] listening\nwarn: some health checks cannot be excluded: no matches "
                        "for \"\",\"x\\\"\"\nready\n"),
      std::string::npos)
      << unknown.body;
}

TEST_F(AdminServerTest, MetricsComeAsPrometheusText) {
  metrics_.counter(contract::kClientDisconnectsTotal).add(3);
  start();
  const HttpAnswer answer = get("/metrics");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.head.find("text/plain; version=0.0.4; charset=utf-8"), std::string::npos);
  EXPECT_NE(answer.body.find("\nsightline_client_disconnects_total 3\n"), std::string::npos);
}

TEST_F(AdminServerTest, RoutesSeeMethodPathQueryAndBody) {
  AdminRequest seen;
  server_.add_route("POST", "/v1/echo", [&seen](const AdminRequest& request) {
    seen = request;
    return AdminResponse{201, request.body};
  });
  start();
  std::string body("a\0b\xff", 4);
  const HttpAnswer answer = http_exchange(server_.port(), "POST", "/v1/%65cho?a=1%202&flag", body);
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, body);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/v1/echo");
  EXPECT_EQ(*seen.find("a"), "1 2");
  EXPECT_TRUE(seen.query.contains("flag"));
}

TEST_F(AdminServerTest, UnknownPathsAndMethodsGetJsonErrors) {
  start();
  EXPECT_EQ(get("/nothing").status, 404);
  EXPECT_EQ(get("/nothing").body,
            "{\"error\":{\"message\":\"no such path on the admin port: /nothing\",\"code\":404}}");
  const HttpAnswer answer = http_exchange(server_.port(), "DELETE", "/healthz");
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(answer.body, "{\"error\":{\"message\":\"allowed here: GET\",\"code\":405}}");
}

TEST_F(AdminServerTest, LongBodiesAreRefusedAndNotKept) {
  std::atomic<int> calls = 0;
  server_.add_route("POST", "/v1/take", [&calls](const AdminRequest&) {
    ++calls;
    return AdminResponse{};
  });
  start();
  EXPECT_EQ(http_exchange(server_.port(), "POST", "/v1/take", std::string(1000, 'x')).status, 200);
  const HttpAnswer answer =
      http_exchange(server_.port(), "POST", "/v1/take", std::string(3'000'000, 'x'));
  EXPECT_EQ(answer.status, 413);
  EXPECT_NE(answer.body.find("longer than 1000 bytes"), std::string::npos);
  const std::string chunk = "400\r\n" + std::string(1024, 'x') + "\r\n";
  const std::string chunked =
      exchange_bytes(server_.port(),
                     "POST /v1/take HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n" +
                         chunk + "0\r\n\r\n");
  EXPECT_TRUE(chunked.starts_with("HTTP/1.1 413 ")) << chunked;
  EXPECT_EQ(calls, 1);
}

TEST_F(AdminServerTest, AClientThatBreaksOffItsBodyHurtsNobody) {
  start();
  for (int i = 0; i < 8; ++i)
    send_and_leave(server_.port(),
                   "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(get("/healthz").status, 200);
}

TEST_F(AdminServerTest, AClientThatStallsDoesNotHoldUpTheEnd) {
  start();
  const test::Socket half_body;
  const test::Socket half_head;
  ASSERT_TRUE(half_body.connect_to(server_.port()));
  ASSERT_TRUE(half_head.connect_to(server_.port()));
  half_body.send_all("POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  half_head.send_all("GET /healthz HTTP/1.1\r\nHo");
  EXPECT_EQ(get("/healthz").status, 200);
  server_.stop();
  EXPECT_EQ(half_body.receive_all().find("200 OK"), std::string::npos);
}

TEST_F(AdminServerTest, AnExceptionInARouteIsA500AndTheServerGoesOn) {
  server_.add_route("GET", "/v1/fail", [](const AdminRequest&) -> AdminResponse {
    return {200, std::string().at(1) == 'x' ? "a" : "b"};
  });
  start();
  EXPECT_EQ(get("/v1/fail").status, 500);
  EXPECT_EQ(get("/healthz").status, 200);
}

TEST_F(AdminServerTest, ATakenPortIsAnErrorThatNamesTheSetting) {
  const test::ListeningSocket other;
  AdminServer second({.port = other.port()}, metrics_);
  const auto result = second.start();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::Unavailable);
  EXPECT_NE(result.error().message.find("--admin-port"), std::string::npos);
}

TEST_F(AdminServerTest, ManyClientsAtOnceAreAllAnswered) {
  server_.add_route("POST", "/v1/length", [](const AdminRequest& request) {
    return AdminResponse{200, std::to_string(request.body.size())};
  });
  start();
  std::atomic<int> right = 0;
  std::vector<std::jthread> clients;
  for (std::size_t i = 0; i < 16; ++i) {
    clients.emplace_back([this, i, &right] {
      const HttpAnswer answer =
          http_exchange(server_.port(), "POST", "/v1/length", std::string(i * 50, 'x'));
      if (answer.body == std::to_string(i * 50)) ++right;
    });
  }
  clients.clear();
  EXPECT_EQ(right, 16);
}

TEST_F(AdminServerTest, LateAnswersHoldUpNobodyAndOnesThatNeverComeAreA503) {
  std::mutex mutex;
  std::vector<AdminServer::Respond> owed;
  server_.add_late_route("GET", "/v1/late",
                         [&](const AdminRequest&, const AdminServer::Respond& respond) {
                           const std::lock_guard lock(mutex);
                           owed.push_back(respond);
                         });
  start();
  std::vector<int> statuses(8);
  std::vector<std::jthread> clients;
  for (int& status : statuses) {
    clients.emplace_back([this, &status] { status = get("/v1/late").status; });
  }
  ASSERT_TRUE(test::eventually([&] {
    const std::lock_guard lock(mutex);
    return owed.size() == statuses.size();
  }));
  EXPECT_EQ(get("/healthz").status, 200);
  const AdminServer::Respond again = owed.front();
  for (std::size_t i = 0; i < 4; ++i) owed[i]({.status = 201});
  owed.clear();
  clients.clear();
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), 201), 4);
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), 503), 4);
  again({.status = 202});
  EXPECT_EQ(get("/healthz").status, 200);
}

TEST_F(AdminServerTest, StopEndsServingAndMayBeRepeated) {
  start();
  const std::uint16_t port = server_.port();
  server_.stop();
  server_.stop();
  EXPECT_EQ(exchange_bytes(port, "GET /healthz HTTP/1.1\r\n\r\n"), "no connection");
}

// cpprestsdk closes the connections that it knows of and waits for all to end: one that it takes up
// just then would be awaited until its client leaves, or it crashes.
TEST(AdminServerStop, DoesNotWaitForClientsWhoseConnectionsComeJustThen) {
  for (int round = 0; round < 40; ++round) {
    Metrics metrics;
    AdminServer server({.port = 0}, metrics);
    ASSERT_TRUE(server.start().ok());
    std::atomic<std::size_t> come = 0;
    std::vector<std::unique_ptr<test::Socket>> held;
    std::thread client([&] {
      while (held.size() < 200) {
        held.push_back(std::make_unique<test::Socket>());
        const timeval patience{.tv_sec = 0, .tv_usec = 100'000};
        setsockopt(held.back()->fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (!held.back()->connect_to(server.port())) return;
        ++come;
      }
    });
    while (come < 5) std::this_thread::yield();
    server.stop();
    client.join();
  }
}

}  // namespace
}  // namespace sightline::runtime
