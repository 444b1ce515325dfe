// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/integration/http/server_fixture.h"
#include "tests/support/loopback.h"

namespace sightline::http {
namespace {

constexpr std::string_view kAnswered = "HTTP/1.1 200 OK\r\n";

class ServerLimitsTest : public ServerTest {
 protected:
  // An answer comes only after its client has left.
  std::vector<RawSocket> occupy(std::size_t connections) {
    std::vector<RawSocket> busy;
    while (busy.size() < connections) {
      busy.push_back(connect());
      busy.back().send(kGet);
      EXPECT_TRUE(eventually([&] { return server_->active_requests() == busy.size(); }));
    }
    return busy;
  }
  void start_holding(const ServerLimits& limits) { start(Departure().handler(), limits); }

  void start_admitting(std::function<Admission(const Request&)> admission) {
    auto echo = [this](Request& request, ResponseWriter& writer) -> Task<void> {
      ++handled_;
      Response response;
      response.body = "got " + request.body;
      static_cast<void>(co_await writer.send(std::move(response)));
    };
    auto server = Server::create(pool_, {.admission = std::move(admission)}, std::move(echo));
    ASSERT_TRUE(server.ok());
    server_ = std::move(server).value();
  }

  std::atomic<int> handled_ = 0;
};

TEST_F(ServerLimitsTest, TurnsAwayConnectionsWhileAllOthersAreAtWork) {
  start_holding({.connections_max = 2});
  auto busy = occupy(2);
  for (int i = 0; i < 3; ++i) {
    auto more = connect();
    const auto refusal = more.receive_all();
    EXPECT_TRUE(refusal.starts_with("HTTP/1.1 503 ")) << refusal;
    EXPECT_NE(refusal.find("(connections-max)"), std::string::npos);
  }
  busy.clear();
  EXPECT_TRUE(eventually([&] { return server_->active_requests() == 0; }));
  auto later = connect();
  later.send("nonsense\r\n\r\n");
  EXPECT_TRUE(later.receive_all().starts_with("HTTP/1.1 400 "));
}

TEST_F(ServerLimitsTest, RejectedConnectionsAreNotReset) {
  start_holding({.connections_max = 1});
  const auto busy = occupy(1);
  const std::string request = post(std::string(20'000, 'x'));
  for (int i = 0; i < 40; ++i) {
    std::vector<RawSocket> clients;
    for (int k = 0; k < 5; ++k) clients.push_back(connect());
    for (auto& client : clients) EXPECT_TRUE(client.send(request));
    for (auto& client : clients) {
      EXPECT_TRUE(client.receive_all().starts_with("HTTP/1.1 503 "));
    }
  }
}

TEST_F(ServerLimitsTest, TheLongestIdleConnectionMakesRoom) {
  start_echo({.connections_max = 8});
  std::vector<RawSocket> clients;
  const auto ask = [](RawSocket& client) {
    client.send(kGet);
    return client.receive_until("GET /a?b=c ");
  };
  for (int i = 0; i < 50; ++i) {
    clients.push_back(connect());
    ASSERT_TRUE(ask(clients.back()).starts_with(kAnswered)) << i;
  }
  // On any of the threads.
  EXPECT_EQ(clients[0].receive_all(), "");
  EXPECT_EQ(clients[20].receive_all(), "");
  EXPECT_TRUE(ask(clients.back()).starts_with(kAnswered));
}

TEST_F(ServerLimitsTest, EmptyLinesDoNotPostponeWhenAConnectionMakesRoom) {
  start_echo({.connections_max = 8});
  auto dodger = connect();
  std::vector<RawSocket> clients;
  for (int i = 0; i < 50; ++i) {
    dodger.send("\r\n");
    clients.push_back(connect());
    clients.back().send(kGet);
    ASSERT_TRUE(clients.back().receive_until("GET /a?b=c ").starts_with(kAnswered)) << i;
  }
  dodger.send(kGet);
  EXPECT_EQ(dodger.receive_all(), "");
}

// While this lives, the process cannot open another file.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(ServerLimitsTest, ANewClientKeepsItsPlaceWithoutDescriptors) {
  std::atomic<int> failed = 0;
  auto echo = [](Request&, ResponseWriter& writer) -> Task<void> {
    Response empty;
    static_cast<void>(co_await writer.send(std::move(empty)));
  };
  ServerOptions options;
  options.limits.idle_kept = std::chrono::hours(1);
  options.accept_failed = [&failed] { ++failed; };
  auto server = Server::create(pool_, std::move(options), std::move(echo));
  ASSERT_TRUE(server.ok());
  server_ = std::move(server).value();
  auto first = connect();
  first.send(kGet);
  ASSERT_TRUE(first.receive_until("\r\n\r\n").starts_with(kAnswered));
  const test::Socket second;
  {
    const NoDescriptors none;
    ASSERT_TRUE(second.connect_to(server_->port()));
    // Each failure looks for room. The first connection is idle since its answer.
    ASSERT_TRUE(eventually([&] { return failed >= 3; }));
    first.send(kGet);
    EXPECT_TRUE(first.receive_until("\r\n\r\n").starts_with(kAnswered));
  }
  second.send_all("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(second.receive_all().starts_with(kAnswered));
}

TEST_F(ServerLimitsTest, ALongIdleClientMakesRoomWithoutDescriptors) {
  start_echo({.idle_kept = Duration::zero()});
  auto first = connect();
  first.send(kGet);
  ASSERT_TRUE(first.receive_until("GET /a?b=c ").starts_with(kAnswered));
  const test::Socket second;
  const NoDescriptors none;
  ASSERT_TRUE(second.connect_to(server_->port()));
  EXPECT_EQ(first.receive_all(), "");
}

TEST_F(ServerLimitsTest, ConnectionsAtWorkDoNotMakeRoom) {
  std::atomic<bool> go_on = false;
  auto wait = [this, &go_on](Request&, ResponseWriter& writer) -> Task<void> {
    while (!go_on) {
      Gate later;
      Deadline deadline(pool_.deadlines(pool_.index_here()), [&later] { later.open(); });
      deadline.set(milliseconds(1));
      co_await later.wait();
    }
    Response empty;
    static_cast<void>(co_await writer.send(std::move(empty)));
  };
  start(wait, {.connections_max = 3});
  auto busy = occupy(2);
  std::vector<RawSocket> idle;
  for (int i = 0; i < 20; ++i) idle.push_back(connect());
  go_on = true;
  for (auto& client : busy) EXPECT_TRUE(client.receive_until("\r\n\r\n").starts_with(kAnswered));
}

TEST_F(ServerLimitsTest, AdmissionAnswersBeforeTheBodyIsRequested) {
  start_admitting([](const Request& head) -> Admission {
    EXPECT_TRUE(head.body.empty());
    Response refusal{.status = 404, .headers = {}, .body = "no"};
    if (head.target == "/unknown") return {.refusal = std::move(refusal)};
    return {};
  });
  const std::string head = " HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n";
  auto refused = connect();
  refused.send("POST /unknown" + head + "Content-Length: 3\r\n\r\n");
  EXPECT_EQ(refused.receive_all(),
            "HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
  auto chunked = connect();
  chunked.send("POST /unknown" + head + "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_TRUE(chunked.receive_all().starts_with("HTTP/1.1 404 "));
  EXPECT_EQ(handled_, 0);
  auto admitted = connect();
  admitted.send("POST /known" + head + "Content-Length: 3\r\n\r\n");
  EXPECT_EQ(admitted.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  admitted.send("abc");
  EXPECT_TRUE(admitted.receive_until("got abc").starts_with(kAnswered));
}

TEST_F(ServerLimitsTest, AConnectionOutlivesARefusalWhoseBodyHasCome) {
  start_admitting([](const Request& head) -> Admission {
    Response refusal{.status = 429, .headers = {}, .body = "no"};
    if (head.method == "POST") return {.refusal = std::move(refusal)};
    return {};
  });
  auto client = connect();
  client.send(post("hello") + std::string(kGet));
  EXPECT_EQ(client.receive_until("no"),
            "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 2\r\n\r\nno");
  EXPECT_TRUE(client.receive_until("got ").starts_with(kAnswered));
}

TEST_F(ServerLimitsTest, AdmissionBoundsTheBody) {
  start_admitting([](const Request& head) -> Admission {
    return {.refusal = {}, .body_bytes_max = head.method == "GET" ? 0U : 5U};
  });
  for (const std::string head : {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n",
                                 "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                                 "1\r\nx\r\n",
                                 "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n"}) {
    auto client = connect();
    client.send(head);
    const auto answer = client.receive_all();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << head;
    EXPECT_NE(answer.find("(body-bytes-max)"), std::string::npos) << answer;
  }
  auto fitting = connect();
  fitting.send(post("hello") + std::string(kGet));
  EXPECT_TRUE(fitting.receive_until("got hello").starts_with(kAnswered));
  EXPECT_TRUE(fitting.receive_until("got ").starts_with(kAnswered));
}

// Sends a byte every ten milliseconds until an answer comes. Returns its first line.
std::string trickle(RawSocket& client) {
  std::atomic<bool> answered = false;
  std::thread sender([&] {
    while (!answered && client.send("1")) {
      const auto end = std::chrono::steady_clock::now() + milliseconds(10);
      while (!answered && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    }
  });
  auto line = client.receive_until("\r\n");
  answered = true;
  sender.join();
  return line;
}

TEST_F(ServerLimitsTest, EndsBodiesThatComeByteByByte) {
  for (const std::string framing :
       {"Content-Length: 1000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"}) {
    start_echo({.body_timeout = milliseconds(300), .bytes_per_s_min = 1'000'000});
    auto client = connect();
    client.send("POST / HTTP/1.1\r\nHost: x\r\n" + framing);
    if (framing.starts_with("T")) client.send("fffff;");
    EXPECT_TRUE(trickle(client).starts_with("HTTP/1.1 408 ")) << framing;
  }
}

TEST_F(ServerLimitsTest, EndsBodiesThatTakeTooLongInTotal) {
  start_echo({.body_time_max = milliseconds(200), .bytes_per_s_min = 1});
  auto client = connect();
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_TRUE(trickle(client).starts_with("HTTP/1.1 408 "));
}

TEST_F(ServerLimitsTest, EndsClientsThatTakeTheirAnswerByteByByte) {
  std::atomic<int> code = -1;
  auto pour = [&](Request&, ResponseWriter& writer) -> Task<void> {
    const std::string chunk(1U << 20U, 'x');
    Headers none;
    static_cast<void>(co_await writer.begin(200, std::move(none)));
    for (;;) {
      const auto result = co_await writer.write(chunk);
      if (result.ok()) continue;
      code = static_cast<int>(result.error().code);
      break;
    }
  };
  // Far above what the client reads. The client never pauses for as long as the server waits.
  start(pour, {.write_timeout = seconds(2), .bytes_per_s_min = std::size_t{1} << 40U});
  auto client = connect();
  client.send(kGet);
  while (code == -1 && !client.receive().empty()) {
    const auto end = std::chrono::steady_clock::now() + milliseconds(1);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  ASSERT_TRUE(eventually([&] { return code != -1; }));
  EXPECT_EQ(code, static_cast<int>(ErrorCode::Timeout));
}

TEST_F(ServerLimitsTest, GivesBackTheBufferOfALargeHeader) {
  start_echo();
  auto client = connect();
  // More than the first buffer, repeatedly, each with the next request.
  const std::string large = "GET /large HTTP/1.1\r\nHost: x\r\nA: " + std::string(40'000, 'a') +
                            "\r\n\r\n" + std::string(kGet);
  for (int i = 0; i < 5; ++i) {
    client.send(large);
    EXPECT_TRUE(client.receive_until("GET /large ").starts_with(kAnswered));
    EXPECT_TRUE(client.receive_until("GET /a?b=c ").starts_with(kAnswered));
  }
}

}  // namespace
}  // namespace sightline::http
