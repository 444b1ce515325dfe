// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/http/server_fixture.h"

namespace sightline::http {
namespace {

TEST_F(ServerTest, AnswersOneRequestAfterTheOtherOnAConnection) {
  start_echo();
  auto client = connect();
  for (int i = 0; i < 3; ++i) {
    client.send(kGet);
    ASSERT_EQ(client.receive_until("GET /a?b=c "),
              "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nGET /a?b=c ");
    client.send(post("hello"));
    ASSERT_EQ(client.receive_until("hello"),
              "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\nPOST /p hello");
  }
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrderHoweverTheyAreSplit) {
  start_echo();
  const auto requests = post("one") + std::string(kGet) + post("two") +
                        "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n" +
                        "GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const std::string want =
      "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nPOST /p one"
      "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nGET /a?b=c "
      "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nPOST /p two"
      "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\nPOST /c abcde"
      "HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\nGET /last ";
  for (std::size_t split = 0; split < requests.size(); ++split) {
    auto client = connect();
    client.send(std::string_view(requests).substr(0, split));
    client.send(std::string_view(requests).substr(split));
    ASSERT_EQ(client.receive_all(), want) << split;
  }
  auto bytewise = connect();
  for (const char byte : requests) bytewise.send({&byte, 1});
  EXPECT_EQ(bytewise.receive_all(), want);
}

TEST_F(ServerTest, GivesTheHandlerWhatTheClientSent) {
  Request seen;
  auto note = [&seen](Request& request, ResponseWriter& writer) -> Task<void> {
    seen = request;
    Response empty;
    static_cast<void>(co_await writer.send(std::move(empty)));
  };
  start(note);
  auto client = connect();
  client.send(
      "POST http://host/v1/x?q=1&r HTTP/1.1\r\nHost: host\r\nX-Mixed-Case:  two words \r\n"
      "x-empty:\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(client.receive_until("\r\n\r\n"), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path(), "/v1/x");
  EXPECT_EQ(seen.query(), "q=1&r");
  EXPECT_EQ(seen.headers.find("x-mixed-case"), "two words");
  EXPECT_EQ(seen.headers.find("X-EMPTY"), "");
  EXPECT_EQ(seen.headers.size(), 4U);
  EXPECT_EQ(seen.body, "abc");
  EXPECT_TRUE(seen.peer.starts_with("127.0.0.1:"));
}

TEST_F(ServerTest, ReadsALargeBodyWithRoomForTheParser) {
  std::string seen;
  std::size_t spare_bytes = 0;
  auto note = [&](Request& request, ResponseWriter& writer) -> Task<void> {
    spare_bytes = request.body.capacity() - request.body.size();
    seen = std::move(request.body);
    Response empty;
    static_cast<void>(co_await writer.send(std::move(empty)));
  };
  start(note);
  for (const std::size_t size : {0U, 1U, 4096U, 1U << 20U, (1U << 20U) + 1, 20U << 20U}) {
    std::string body(size, 'x');
    for (std::size_t i = 0; i < size; i += 97) body[i] = static_cast<char>('a' + i % 26);
    auto client = connect();
    client.send(post(body));
    ASSERT_EQ(client.receive_until("\r\n\r\n"), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    EXPECT_TRUE(seen == body) << size;
    EXPECT_GE(spare_bytes, 64U) << size;
  }
}

TEST_F(ServerTest, CopiesALargeChunkedBodyOnce) {
  constexpr std::size_t kBodyBytesMax = 8U << 20U;
  std::size_t bytes = 0;
  std::size_t capacity = 0;
  auto note = [&](Request& request, ResponseWriter& writer) -> Task<void> {
    bytes = request.body.size();
    capacity = request.body.capacity();
    Response empty;
    static_cast<void>(co_await writer.send(std::move(empty)));
  };
  start(note, {.body_bytes_max = kBodyBytesMax});
  auto client = connect();
  std::string request = "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 5; ++i) request += "80000\r\n" + std::string(0x80000, 'x') + "\r\n";
  client.send(request + "0\r\n\r\n");
  ASSERT_EQ(client.receive_until("\r\n\r\n"), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  EXPECT_EQ(bytes, 5U * 0x80000U);
  // The capacity for the whole body: memory that doubled would have been copied at 2 MiB.
  EXPECT_GE(capacity, kBodyBytesMax);
}

TEST_F(ServerTest, AnswersExpect100ContinueBeforeTheBodyComes) {
  start_echo();
  auto client = connect();
  client.send("POST /p HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.receive_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_EQ(client.receive_until("abc"),
            "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nPOST /p abc");
}

TEST_F(ServerTest, RefusesATooLargeBodyInsteadOfAskingForIt) {
  start_echo({.body_bytes_max = 10});
  auto client = connect();
  client.send("POST /p HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n");
  EXPECT_TRUE(client.receive_all().starts_with("HTTP/1.1 413 Content Too Large\r\n"));
}

TEST_F(ServerTest, DeliversItsRefusalToAClientThatIsStillSending) {
  start_echo({.body_bytes_max = 1000});
  auto client = connect();
  const std::string body(100U << 20U, 'x');
  EXPECT_TRUE(client.send(post(body)));
  EXPECT_TRUE(client.receive_all().starts_with("HTTP/1.1 413 "));
}

TEST_F(ServerTest, StreamsChunksAsTheHandlerWritesThem) {
  auto stream = [](Request&, ResponseWriter& writer) -> Task<void> {
    EXPECT_FALSE(writer.started());
    Headers headers{{"content-type", "text/event-stream"}, {"content-length", "9"}};
    static_cast<void>(co_await writer.begin(200, std::move(headers)));
    EXPECT_TRUE(writer.started());
    static_cast<void>(co_await writer.write("data: a\n\n"));
    static_cast<void>(co_await writer.write(""));
    static_cast<void>(co_await writer.write("data: b\n\n"));
    static_cast<void>(co_await writer.finish());
  };
  start(stream);
  const std::string want =
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
      "9\r\ndata: a\n\n\r\n9\r\ndata: b\n\n\r\n0\r\n\r\n";
  auto client = connect();
  for (int i = 0; i < 2; ++i) {
    client.send(kGet);
    EXPECT_EQ(client.receive_until("0\r\n\r\n"), want);
  }
  auto old = connect();
  old.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.receive_all(),
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            "data: a\n\ndata: b\n\n");
}

TEST_F(ServerTest, SendsNoBodyInAnswerToHead) {
  start_echo();
  auto client = connect();
  client.send("HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(kGet));
  EXPECT_EQ(client.receive_until("GET /a?b=c "),
            "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n"
            "HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\nGET /a?b=c ");
}

TEST_F(ServerTest, AnswersForAHandlerWithoutAnAnswer) {
  auto silent = [](Request&, ResponseWriter&) -> Task<void> { co_return; };
  start(silent);
  auto client = connect();
  client.send(kGet);
  EXPECT_TRUE(client.receive_until("\r\n").starts_with("HTTP/1.1 500 "));
}

TEST_F(ServerTest, SendsNoRefusalWhenTheClientHasLeft) {
  Departure departure;
  std::atomic<int> refusals = 0;
  auto refusal = [&](int status, const Error&) {
    ++refusals;
    return Response{status, {}, ""};
  };
  auto server = Server::create(pool_, {.refusal = refusal}, departure.handler());
  ASSERT_TRUE(server.ok());
  auto client = RawSocket::connect((*server)->port());
  client.send(kGet);
  ASSERT_TRUE(eventually([&] { return departure.seen->waiting.load(); }));
  client.end_sending();
  EXPECT_EQ(client.receive_all(), "");
  EXPECT_EQ(refusals, 0);
}

TEST_F(ServerTest, CutsTheConnectionWhenABodyStopsInTheMiddle) {
  auto stop = [](Request&, ResponseWriter& writer) -> Task<void> {
    Headers none;
    static_cast<void>(co_await writer.begin(200, std::move(none)));
    static_cast<void>(co_await writer.write("part"));
  };
  start(stop);
  auto client = connect();
  client.send(kGet);
  EXPECT_EQ(client.receive_all(),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n");
}

TEST_F(ServerTest, NoticesAClientThatLeavesWhileTheHandlerWaits) {
  for (const bool by_reset : {false, true}) {
    Departure departure;
    start(departure.handler());
    auto client = connect();
    client.send(kGet);
    ASSERT_TRUE(eventually([&] { return departure.seen->waiting.load(); }));
    by_reset ? client.reset() : client.close();
    ASSERT_TRUE(eventually([&] { return departure.seen->noticed.load(); }));
    ASSERT_TRUE(eventually([&] { return server_->active_requests() == 0; }));
  }
}

TEST_F(ServerTest, DistinguishesAPipelinedRequestFromADisconnect) {
  Departure departure;
  start(departure.handler());
  auto client = connect();
  client.send(kGet);
  ASSERT_TRUE(eventually([&] { return departure.seen->waiting.load(); }));
  client.send(kGet);
  // A request of another connection on each thread shows that the first had time to be noticed.
  for (int i = 0; i < 50; ++i) {
    Gate unused;
    fakes::run_task(
        pool_, []() -> Task<void> { co_return; }, static_cast<std::size_t>(i % 2));
  }
  EXPECT_FALSE(departure.seen->noticed);
  client.close();
  EXPECT_TRUE(eventually([&] { return departure.seen->noticed.load(); }));
}

TEST_F(ServerTest, NoticesADepartureBehindManyPipelinedRequests) {
  for (const bool by_reset : {false, true}) {
    Departure departure;
    start(departure.handler());
    auto client = connect();
    std::string requests;
    while (requests.size() < 50'000) requests += kGet;
    client.send(requests);
    ASSERT_TRUE(eventually([&] { return departure.seen->waiting.load(); }));
    by_reset ? client.reset() : client.close();
    EXPECT_TRUE(eventually([&] { return departure.seen->noticed.load(); }));
    server_.reset();
  }
}

TEST_F(ServerTest, HoldsBackTheHandlerWhenTheClientDoesNotRead) {
  std::atomic<std::size_t> written = 0;
  std::atomic<bool> failed = false;
  auto pour = [&](Request&, ResponseWriter& writer) -> Task<void> {
    const std::string chunk(65536, 'x');
    Headers none;
    static_cast<void>(co_await writer.begin(200, std::move(none)));
    for (;;) {
      const auto result = co_await writer.write(chunk);
      if (!result.ok()) break;
      written += chunk.size();
    }
    failed = true;
  };
  start(pour);
  auto client = connect();
  client.send(kGet);
  // The kernel's buffers fill. Then the count must not rise although the handler would continue.
  ASSERT_TRUE(eventually([&] { return written.load() > 0; }));
  std::size_t before = 0;
  ASSERT_TRUE(eventually([&] {
    const auto now = written.load();
    const bool still = now == std::exchange(before, now);
    const auto end = std::chrono::steady_clock::now() + milliseconds(100);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return still;
  }));
  constexpr std::size_t kKernelBuffersMax = 32U << 20U;
  EXPECT_LT(written.load(), kKernelBuffersMax);
  // Reading makes it continue.
  std::size_t read = 0;
  while (read < before + (1U << 20U)) read += client.receive().size();
  client.close();
  EXPECT_TRUE(eventually([&] { return failed.load(); }));
}

TEST_F(ServerTest, ClosesTheConnectionOfAClientThatNeverReads) {
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
  start(pour, {.write_timeout = milliseconds(100)});
  auto client = connect();
  client.send(kGet);
  ASSERT_TRUE(eventually([&] { return code != -1; }));
  EXPECT_EQ(code, static_cast<int>(ErrorCode::Timeout));
}

TEST_F(ServerTest, EndsSlowRequests) {
  start_echo({.header_timeout = milliseconds(60), .body_timeout = milliseconds(60)});
  auto slow_header = connect();
  slow_header.send("GET / HTTP/1.1\r\nHos");
  EXPECT_TRUE(slow_header.receive_all().starts_with("HTTP/1.1 408 Request Timeout\r\n"));
  auto slow_body = connect();
  slow_body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  EXPECT_TRUE(slow_body.receive_all().starts_with("HTTP/1.1 408 Request Timeout\r\n"));
  auto slow_chunk = connect();
  slow_chunk.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab");
  EXPECT_TRUE(slow_chunk.receive_all().starts_with("HTTP/1.1 408 Request Timeout\r\n"));
}

TEST_F(ServerTest, EndsIdleConnections) {
  start_echo({.idle_timeout = milliseconds(60)});
  auto idle = connect();
  EXPECT_EQ(idle.receive_all(), "");
  // Repeated, because on a slow machine the connection may be idle before the request is sent.
  EXPECT_TRUE(eventually([&] {
    auto used = connect();
    return used.send(kGet) && used.receive_all().ends_with("GET /a?b=c ");
  }));
}

TEST_F(ServerTest, DoesNotCountTheHandlersTimeAsIdle) {
  auto slow = [this](Request&, ResponseWriter& writer) -> Task<void> {
    Gate later;
    Deadline deadline(pool_.deadlines(pool_.index_here()), [&later] { later.open(); });
    deadline.set(milliseconds(200));
    co_await later.wait();
    Response empty;
    static_cast<void>(co_await writer.send(std::move(empty)));
  };
  start(slow, {.header_timeout = milliseconds(40), .idle_timeout = milliseconds(40)});
  // Repeated, because on a slow machine the connection may be idle before the request is sent.
  EXPECT_TRUE(eventually([&] {
    auto client = connect();
    return client.send(kGet) && client.receive_until("\r\n").starts_with("HTTP/1.1 200 ");
  }));
}

TEST_F(ServerTest, BoundsTheBodiesOfAllConnectionsTogether) {
  std::atomic<bool> holding = false;
  auto hold_first = [&](Request& request, ResponseWriter& writer) -> Task<void> {
    Gate gone;
    if (!holding.exchange(true)) {
      writer.on_disconnect([&gone] { gone.open(); });
      co_await gone.wait();
    }
    Response response;
    response.body = std::move(request.body);
    static_cast<void>(co_await writer.send(std::move(response)));
  };
  start(hold_first, {.total_body_bytes_max = 100'000});
  const std::string part(60'000, 'x');
  auto holder = connect();
  holder.send(post(part));
  ASSERT_TRUE(eventually([&] { return holding.load(); }));
  for (const std::string_view framing :
       {"Content-Length: 60001\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nEA60\r\n"}) {
    auto other = connect();
    other.send("POST /p HTTP/1.1\r\nHost: x\r\n" + std::string(framing) + part);
    EXPECT_TRUE(other.receive_until("\r\n").starts_with("HTTP/1.1 503 "));
  }
  auto small = connect();
  small.send(post("fits"));
  EXPECT_TRUE(small.receive_until("fits").starts_with("HTTP/1.1 200 "));
  holder.close();
  EXPECT_TRUE(eventually([&] {
    auto later = connect();
    later.send(post(part));
    return later.receive_until("\r\n").starts_with("HTTP/1.1 200 ");
  }));
}

TEST_F(ServerTest, CountsNoBodyThatIsOnlyAnnounced) {
  start_echo({.total_body_bytes_max = 100'000});
  auto announcing = connect();
  announcing.send("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n");
  auto other = connect();
  other.send(post(std::string(90'000, 'x')));
  EXPECT_TRUE(other.receive_until("xx").starts_with("HTTP/1.1 200 "));
}

TEST_F(ServerTest, NamesTheLimitThatARequestExceeds) {
  auto handler = [](Request&, ResponseWriter&) -> Task<void> { co_return; };
  auto refusal = [](int status, const Error& error) {
    return Response{status, {}, error.limit + "|" + error.message};
  };
  const ServerLimits limits{.header_bytes_max = 2000,
                            .header_fields_max = 3,
                            .target_bytes_max = 500,
                            .body_bytes_max = 10};
  auto server = Server::create(pool_, {.limits = limits, .refusal = refusal}, handler);
  ASSERT_TRUE(server.ok());
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"431 header-bytes-max 2000", head + "a: " + std::string(3000, 'b') + "\r\n\r\n"},
      {"431 header-fields-max 3", head + "a: b\r\nc: d\r\ne: f\r\n\r\n"},
      {"414 target-bytes-max 500",
       "GET /" + std::string(500, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"414 target-bytes-max 500", "GET /" + std::string(900, 'a')},
      {"413 body-bytes-max 10", head + "content-length: 11\r\n\r\n"},
  };
  for (const auto& [want, request] : cases) {
    auto client = RawSocket::connect((*server)->port());
    client.send(request);
    const auto answer = client.receive_all();
    const auto limit = want.substr(4, want.rfind(' ') - 4);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 " + want.substr(0, 3))) << answer;
    EXPECT_NE(answer.find("\r\n\r\n" + limit + "|"), std::string::npos) << answer;
    EXPECT_NE(answer.find("(" + limit + ")"), std::string::npos) << answer;
    EXPECT_NE(answer.find(" " + want.substr(want.rfind(' ') + 1) + " "), std::string::npos)
        << answer;
  }
}

TEST_F(ServerTest, DoesNotShareAPortWithAnotherServer) {
  start_echo();
  const auto second = Server::create(pool_, {.port = server_->port()},
                                     [](Request&, ResponseWriter&) -> Task<void> { co_return; });
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::Unavailable);
  EXPECT_NE(second.error().message.find("Choose another"), std::string::npos);
}

TEST_F(ServerTest, LetsTheOwnerShapeItsRefusals) {
  auto handler = [](Request&, ResponseWriter&) -> Task<void> { co_return; };
  auto refusal = [](int status, const Error& error) {
    return Response{status, {{"x-own", "yes"}}, error.message};
  };
  auto server = Server::create(pool_, {.refusal = refusal}, handler);
  ASSERT_TRUE(server.ok());
  auto client = RawSocket::connect((*server)->port());
  client.send("nonsense\r\n\r\n");
  EXPECT_EQ(client.receive_all(),
            "HTTP/1.1 400 Bad Request\r\nx-own: yes\r\ncontent-length: 26\r\n"
            "connection: close\r\n\r\nthe first line is not HTTP");
}

}  // namespace
}  // namespace sightline::http
