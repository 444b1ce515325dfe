// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/admin_port/admin_server.h"

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

namespace sightline::admin_port {
namespace {

using test::exchange_bytes;
using test::http_exchange;
using test::HttpAnswer;
using test::send_and_leave;

class AdminServerTest : public testing::Test {
 protected:
  AdminServerTest() : server_({.port = 0}, metrics_) {}

  void start() { ASSERT_TRUE(server_.start().ok()); }
  HttpAnswer get(const std::string& target) { return http_exchange(server_.port(), "GET", target); }

  static constexpr std::size_t kBodyBytesMax = 1000;
  runtime::Metrics metrics_;
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

TEST_F(AdminServerTest, ReadinessSkipsExcludedChecks) {
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
  server_.add_route("POST", "/v1/echo",
                    [&seen](const AdminRequest& request) {
                      seen = request;
                      return AdminResponse{201, request.body};
                    },
                    {.body_bytes_max = kBodyBytesMax});
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
  server_.add_route("POST", "/v1/take",
                    [&calls](const AdminRequest&) {
                      ++calls;
                      return AdminResponse{};
                    },
                    {.body_bytes_max = kBodyBytesMax});
  start();
  EXPECT_EQ(http_exchange(server_.port(), "POST", "/v1/take", std::string(1000, 'x')).status, 200);
  const HttpAnswer answer =
      http_exchange(server_.port(), "POST", "/v1/take", std::string(3'000'000, 'x'));
  EXPECT_EQ(answer.status, 413);
  EXPECT_NE(answer.body.find("more than 1000 bytes"), std::string::npos) << answer.body;
  const std::string chunk = "400\r\n" + std::string(1024, 'x') + "\r\n";
  const std::string chunked =
      exchange_bytes(server_.port(),
                     "POST /v1/take HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n" +
                         chunk + "0\r\n\r\n");
  EXPECT_TRUE(chunked.starts_with("HTTP/1.1 413 ")) << chunked;
  EXPECT_EQ(calls, 1);
}

TEST_F(AdminServerTest, PathsThatTakeNoBodyRefuseOne) {
  start();
  EXPECT_EQ(http_exchange(server_.port(), "GET", "/healthz", "x").status, 413);
  EXPECT_NE(metrics_.scrape().find("sightline_limit_hits_total{limit=\"body-bytes-max\"} 1\n"),
            std::string::npos);
}

TEST_F(AdminServerTest, AGuardDecidesBeforeTheBodyIsSent) {
  std::atomic<int> calls = 0;
  server_.add_route("PUT", "/v1/guarded",
                    [&calls](const AdminRequest&) {
                      ++calls;
                      return AdminResponse{};
                    },
                    {.body_bytes_max = kBodyBytesMax,
                     .guard = [](const AdminRequest& head) -> std::optional<AdminResponse> {
                       EXPECT_TRUE(head.body.empty());
                       if (head.authorization == "Bearer right") return std::nullopt;
                       return admin_error(401, "no");
                     }});
  start();
  // The body never comes. A server that waited for it would not answer.
  const std::string head = "PUT /v1/guarded HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n";
  const test::Socket stranger;
  ASSERT_TRUE(stranger.connect_to(server_.port()));
  stranger.send_all(head + "Content-Length: 100\r\n\r\n");
  shutdown(stranger.fd(), SHUT_WR);
  EXPECT_TRUE(stranger.receive_all().starts_with("HTTP/1.1 401 "));
  EXPECT_EQ(calls, 0);
  const std::string friendly =
      exchange_bytes(server_.port(), head +
                                         "Authorization: Bearer right\r\nConnection: close\r\n"
                                         "Content-Length: 3\r\n\r\nabc");
  EXPECT_NE(friendly.find("HTTP/1.1 200 "), std::string::npos) << friendly;
  EXPECT_EQ(calls, 1);
}

TEST_F(AdminServerTest, ProbesAreAnsweredWhileEveryRouteThreadIsBusy) {
  std::mutex busy;
  std::unique_lock hold(busy);
  std::atomic<int> running = 0;
  server_.add_route("GET", "/v1/slow", [&](const AdminRequest&) {
    ++running;
    const std::lock_guard wait(busy);
    return AdminResponse{};
  });
  start();
  std::vector<std::jthread> clients;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([this, &answered] { answered += get("/v1/slow").status == 200 ? 1 : 0; });
  }
  EXPECT_TRUE(test::eventually([&] { return running == 2; }));
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_EQ(answered, 0);
  hold.unlock();
  clients.clear();
  EXPECT_EQ(answered, 8);
}

TEST_F(AdminServerTest, DropsTheWorkOfClientsThatHaveLeft) {
  std::mutex busy;
  std::unique_lock hold(busy);
  std::atomic<int> running = 0;
  server_.add_route("GET", "/v1/slow", [&](const AdminRequest&) {
    ++running;
    const std::lock_guard wait(busy);
    return AdminResponse{};
  });
  start();
  const std::string request = "GET /v1/slow HTTP/1.1\r\nHost: x\r\n\r\n";
  std::vector<std::unique_ptr<test::Socket>> clients;
  for (int i = 0; i < 12; ++i) {
    clients.push_back(std::make_unique<test::Socket>());
    ASSERT_TRUE(clients.back()->connect_to(server_.port()));
    clients.back()->send_all(request);
  }
  EXPECT_TRUE(test::eventually([&] { return running == 2; }));
  clients.clear();
  // The server has seen them leave when it has served a later client.
  for (int i = 0; i < 50; ++i) EXPECT_EQ(get("/healthz").status, 200);
  hold.unlock();
  EXPECT_EQ(get("/v1/slow").status, 200);
  EXPECT_LE(running, 4);
}

TEST_F(AdminServerTest, ASecondPipelinedRequestIsAnswered) {
  start();
  const std::string probe = "GET /healthz HTTP/1.1\r\nHost: x\r\n";
  const std::string both =
      exchange_bytes(server_.port(), probe + "\r\n" + probe + "Connection: close\r\n\r\n");
  const auto first = both.find("ok\n");
  ASSERT_NE(first, std::string::npos) << both;
  EXPECT_NE(both.find("ok\n", first + 1), std::string::npos) << both;
}

TEST_F(AdminServerTest, HeadIsAnsweredAsGetWithoutTheBody) {
  start();
  const HttpAnswer answer = http_exchange(server_.port(), "HEAD", "/healthz");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.head.find("content-length: 3"), std::string::npos);
  EXPECT_EQ(answer.body, "");
}

TEST_F(AdminServerTest, MalformedEscapesAreRefused) {
  start();
  for (const char* target : {"/health%", "/health%zz", "/readyz?exclude=%4", "/readyz?%-1=a"}) {
    EXPECT_EQ(get(target).status, 400) << target;
  }
}

TEST_F(AdminServerTest, AClientThatBreaksOffItsBodyHarmsNoOther) {
  server_.add_route("POST", "/v1/take", [](const AdminRequest&) { return AdminResponse{}; },
                    {.body_bytes_max = kBodyBytesMax});
  start();
  for (int i = 0; i < 8; ++i)
    send_and_leave(server_.port(),
                   "POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(get("/healthz").status, 200);
}

TEST_F(AdminServerTest, AClientThatStallsDoesNotHoldUpTheEnd) {
  server_.add_route("POST", "/v1/take", [](const AdminRequest&) { return AdminResponse{}; },
                    {.body_bytes_max = kBodyBytesMax});
  start();
  const test::Socket half_body;
  const test::Socket half_head;
  ASSERT_TRUE(half_body.connect_to(server_.port()));
  ASSERT_TRUE(half_head.connect_to(server_.port()));
  half_body.send_all("POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  half_head.send_all("GET /healthz HTTP/1.1\r\nHo");
  EXPECT_EQ(get("/healthz").status, 200);
  server_.stop();
  EXPECT_EQ(half_body.receive_all().find("200 OK"), std::string::npos);
}

TEST_F(AdminServerTest, AnExceptionInARouteIsA500) {
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

TEST_F(AdminServerTest, AnswersManyConcurrentClients) {
  server_.add_route("POST", "/v1/length",
                    [](const AdminRequest& request) {
                      return AdminResponse{200, std::to_string(request.body.size())};
                    },
                    {.body_bytes_max = kBodyBytesMax});
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

TEST_F(AdminServerTest, LateAnswersDelayNoOtherAndMissingOnesAre503) {
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

TEST_F(AdminServerTest, AnAnswerThatNeverComesIs503WhenItStops) {
  std::vector<AdminServer::Respond> owed;
  std::atomic<bool> asked = false;
  server_.add_late_route("GET", "/v1/late",
                         [&](const AdminRequest&, const AdminServer::Respond& respond) {
                           owed.push_back(respond);
                           asked = true;
                         });
  start();
  int status = 0;
  std::jthread client([this, &status] { status = get("/v1/late").status; });
  ASSERT_TRUE(test::eventually([&] { return asked.load(); }));
  server_.stop();
  client.join();
  EXPECT_EQ(status, 503);
  owed.front()({.status = 200});  // too late, and harmless
}

TEST_F(AdminServerTest, TheLongestIdleConnectionMakesRoom) {
  AdminServer small({.port = 0, .connections_max = 4}, metrics_);
  ASSERT_TRUE(small.start().ok());
  std::vector<std::unique_ptr<test::Socket>> idle;
  for (int i = 0; i < 12; ++i) {
    idle.push_back(std::make_unique<test::Socket>());
    ASSERT_TRUE(idle.back()->connect_to(small.port()));
    EXPECT_EQ(http_exchange(small.port(), "GET", "/healthz").status, 200) << i;
  }
  // It was closed without a byte. The youngest connection is still open.
  EXPECT_EQ(idle.front()->receive_all(), "");
  idle.back()->send_all("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(idle.back()->receive_all().starts_with("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace sightline::admin_port
