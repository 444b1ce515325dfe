// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/exchange.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/integration/http/exchange_fixture.h"

namespace sightline::http {
namespace {

using fakes::eventually;
using fakes::FullListener;
using fakes::RawSocket;
using std::chrono::milliseconds;

constexpr std::string_view kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

RawSocket accept_and_answer(RawListener& listener) {
  auto socket = listener.accept();
  socket.receive_until("body");
  socket.send(kHello);
  return socket;
}

TEST_F(ExchangeTest, SendsTheRequestInPiecesAndReadsTheAnswer) {
  std::string request;
  serve([&](RawListener& listener) {
    auto socket = listener.accept();
    request = socket.receive_until("body");
    socket.send(kHello);
  });
  const auto outcome = run(call());
  server_.reset();
  EXPECT_EQ(request, "POST /v1 HTTP/1.1\r\nhost: 127.0.0.1:" + std::to_string(listener_.port()) +
                         "\r\nx-a: b\r\ncontent-length: 4\r\n\r\nbody");
  EXPECT_EQ(outcome.status, 200);
  EXPECT_EQ(outcome.headers.find("content-length"), "5");
  EXPECT_EQ(outcome.body, "hello");
  EXPECT_TRUE(outcome.whole);
  EXPECT_EQ(outcome.failure, Failure::None);
}

TEST_F(ExchangeTest, BlamesTheRouterForMissingDescriptors) {
  Client without(pool_, {.descriptor_max = 0});
  run_task(pool_, [&]() -> Task<void> {
    Exchange exchange(without);
    const Call wanted = call();
    const auto started = co_await exchange.start(wanted);
    EXPECT_FALSE(started.ok());
    EXPECT_EQ(exchange.failure(), Failure::Local);
    EXPECT_FALSE(exchange.connection_refused());
    EXPECT_EQ(started.error().blame, Blame::Internal);
    EXPECT_EQ(started.error().limit, "open-files");
  });
}

TEST_F(ExchangeTest, UsesANewConnectionOnRequest) {
  serve([](RawListener& listener) {
    const auto first = accept_and_answer(listener);
    accept_and_answer(listener);
  });
  EXPECT_EQ(run(call()).body, "hello");
  Call fresh = call();
  fresh.fresh = true;
  EXPECT_EQ(run(fresh).body, "hello");
}

TEST_F(ExchangeTest, UsesAConnectionAgainAfterTheAnswerWasRead) {
  serve([](RawListener& listener) {
    auto socket = listener.accept();
    for (int i = 0; i < 3; ++i) {
      socket.receive_until("body");
      socket.send(kHello);
    }
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run(call()).body, "hello");
}

TEST_F(ExchangeTest, KeepsAConnectionAfterAnEmptyOrUnwantedAnswer) {
  serve([](RawListener& listener) {
    auto socket = listener.accept();
    for (const auto& answer :
         {std::string_view("HTTP/1.1 204 No Content\r\n\r\n"), kHello, kHello}) {
      socket.receive_until("body");
      socket.send(answer);
    }
  });
  for (const int want : {204, 200, 200}) {
    run_task(pool_, [&]() -> Task<void> {
      Exchange exchange(client_);
      const auto request = call();
      const auto started = co_await exchange.start(request);
      EXPECT_TRUE(started.ok());
      EXPECT_EQ(exchange.status(), want);
    });
  }
}

TEST_F(ExchangeTest, SendsARequestOnceIfAKeptConnectionClosesUnanswered) {
  // The server closes only when the second request has begun to arrive, so no watch can see it
  // before.
  serve([](RawListener& listener) {
    auto first = accept_and_answer(listener);
    first.receive_until("POST");
    first.reset();
    listener.accept().receive_until("body");
  });
  EXPECT_EQ(run(call()).body, "hello");
  for (const bool kept : {true, false}) {
    const auto outcome = run(call());
    EXPECT_EQ(outcome.failure, Failure::NoAnswer);
    EXPECT_EQ(outcome.kept_closed, kept);
  }
}

TEST_F(ExchangeTest, SkipsAKeptConnectionThatOnlyTheKernelKnowsClosed) {
  std::promise<void> close, closed;
  serve([&](RawListener& listener) {
    auto first = accept_and_answer(listener);
    close.get_future().wait();
    first.close();
    closed.set_value();
    accept_and_answer(listener);
  });
  Outcome outcome;
  run_task(pool_, [&]() -> Task<void> {
    const auto request = call();
    co_await converse(request, outcome);
    // The I/O thread is kept busy, so the connection's watch cannot notice.
    close.set_value();
    closed.get_future().wait();
    co_await converse(request, outcome);
  });
  EXPECT_EQ(outcome.body, "hellohello");
}

TEST_F(ExchangeTest, SkipsAKeptConnectionThatHasJustExpired) {
  Client young(pool_, {.idle_age_max = milliseconds(40)});
  std::promise<void> over;
  serve([&](RawListener& listener) {
    const RawSocket sockets[] = {accept_and_answer(listener), accept_and_answer(listener)};
    over.get_future().wait();
  });
  run_task(pool_, [&]() -> Task<void> {
    for (int i = 0; i < 2; ++i) {
      Exchange exchange(young);
      const auto request = call();
      const auto started = co_await exchange.start(request);
      const auto body = co_await read_all(exchange, 100);
      EXPECT_TRUE(started.ok() && body.ok()) << i;
      // Continues at the very moment when the connection's own deadline passes.
      Gate passed;
      Deadline deadline(pool_.deadlines(0), [&passed] { passed.open(); });
      deadline.set(milliseconds(40));
      if (i == 0) co_await passed.wait();
    }
  });
  over.set_value();
  pool_.stop();
}

TEST_F(ExchangeTest, DropsAKeptConnectionThatIsClosedOrWrittenTo) {
  std::atomic<int> closed = 0;
  serve([&](RawListener& listener) {
    for (const bool write : {false, true}) {
      auto socket = accept_and_answer(listener);
      if (write) {
        socket.send("HTTP/1.1 408 Request Timeout\r\n\r\n");
        EXPECT_EQ(socket.receive(), "");  // our side closes
      } else {
        socket.end_sending();
        EXPECT_EQ(socket.receive(), "");
      }
      ++closed;
    }
  });
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(run(call()).body, "hello");
    EXPECT_TRUE(eventually([&] { return closed == i; }));
  }
}

TEST_F(ExchangeTest, ClosesKeptConnectionsThatGrewOldOrAreForgotten) {
  Client young(pool_, {.idle_age_max = milliseconds(40)});
  std::atomic<int> ended = 0;
  serve([&](RawListener& listener) {
    for (int i = 0; i < 2; ++i) {
      auto socket = accept_and_answer(listener);
      EXPECT_EQ(socket.receive(), "");
      ++ended;
    }
  });
  const auto use = [&](Client& client) {
    run_task(pool_, [&]() -> Task<void> {
      Exchange exchange(client);
      const auto request = call();
      const auto started = co_await exchange.start(request);
      EXPECT_TRUE(started.ok());
      const auto body = co_await read_all(exchange, 100);
      EXPECT_EQ(body.value(), "hello");
    });
  };
  use(young);
  EXPECT_TRUE(eventually([&] { return ended == 1; }));
  use(client_);
  client_.forget(call().endpoint);
  EXPECT_TRUE(eventually([&] { return ended == 2; }));
  pool_.stop();
}

TEST_F(ExchangeTest, JoinsChunksThatArriveTogether) {
  const auto outcome = answer_with(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4\r\nabcd\r\n2;ext=1\r\nef\r\n1\r\ng\r\n0\r\nTrailer: x\r\n\r\n");
  EXPECT_EQ(outcome.body, "abcdefg");
  EXPECT_EQ(outcome.pieces, 1U);
  EXPECT_TRUE(outcome.whole);
}

TEST_F(ExchangeTest, ReadsTheSameBodyHoweverItIsSplit) {
  const std::string answer =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4\r\nabcd\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
  serve([&](RawListener& listener) {
    auto socket = listener.accept();
    for (std::size_t split = 1; split < answer.size(); ++split) {
      socket.receive_until("body");
      socket.send(std::string_view(answer).substr(0, split));
      socket.send(std::string_view(answer).substr(split));
    }
    socket.receive_until("body");
    for (const char byte : answer) socket.send({&byte, 1});
  });
  for (std::size_t split = 1; split <= answer.size(); ++split) {
    const auto outcome = run(call());
    ASSERT_EQ(outcome.body, "abcd0123456789abcdef") << split;
    ASSERT_EQ(outcome.status, 200);
  }
}

TEST_F(ExchangeTest, ABodyWithoutLengthEndsWithTheConnection) {
  for (const auto* const version : {"HTTP/1.0", "HTTP/1.1"}) {
    const auto outcome = answer_with(std::string(version) + " 200 OK\r\n\r\nold style");
    EXPECT_EQ(outcome.body, "old style");
    EXPECT_TRUE(outcome.whole);
  }
}

TEST_F(ExchangeTest, ReturnsTheAnswerOfAServerThatStopsReading) {
  const std::string large(8U << 20U, 'x');
  const std::vector<std::string_view> pieces{large};
  serve([](RawListener& listener) {
    auto socket = listener.accept();
    socket.receive_until("\r\n\r\n");
    socket.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
    socket.end_sending();
    socket.receive_all();
  });
  auto request = call();
  request.body = pieces;
  EXPECT_EQ(run(request).status, 413);
  server_.reset();
}

struct FailureCase {
  std::string name;
  std::string answer;
  Failure want_failure;
  ErrorCode want_code;
  bool want_started;
  bool want_response_begun;
};

TEST_F(ExchangeTest, DistinguishesFailuresOfAServer) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  using enum Failure;
  const std::vector<FailureCase> cases{
      {"nothing", "", NoAnswer, ErrorCode::Unavailable, false, false},
      {"half a header", head, BrokenOff, ErrorCode::Unavailable, false, true},
      {"half a body", head + "Content-Length: 9\r\n\r\nabc", BrokenOff, ErrorCode::Unavailable,
       true, true},
      {"half a chunk", chunked + "5\r\nab", BrokenOff, ErrorCode::Unavailable, true, true},
      {"no last chunk", chunked + "2\r\nab\r\n", BrokenOff, ErrorCode::Unavailable, true, true},
      {"garbage", "\x16\x03\x01 garbage\r\n\r\n", Corrupt, ErrorCode::Corrupt, false, true},
      {"bad status", "HTTP/1.1 20 OK\r\n\r\n", Corrupt, ErrorCode::Corrupt, false, true},
      {"bad chunk", chunked + "zz\r\nab\r\n", Corrupt, ErrorCode::Corrupt, true, true},
      {"negative chunk", chunked + "-5\r\nab\r\n", Corrupt, ErrorCode::Corrupt, true, true},
      {"huge chunk", chunked + "fffffffffffffffff\r\nab\r\n", Corrupt, ErrorCode::Corrupt, true,
       true},
      {"two lengths", head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\na", Corrupt,
       ErrorCode::Corrupt, false, true},
      {"length and chunks", head + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       Corrupt, ErrorCode::Corrupt, false, true},
      {"other coding", head + "Transfer-Encoding: gzip, chunked\r\n\r\n", Corrupt,
       ErrorCode::Corrupt, false, true},
      {"other protocol", "HTTP/1.1 101 Switching Protocols\r\n\r\n", Corrupt, ErrorCode::Corrupt,
       false, true},
      {"endless header", head + "A: " + std::string(70000, 'a'), TooLarge, ErrorCode::TooLarge,
       false, true},
      {"endless chunk line", chunked + "5;" + std::string(70000, 'a'), Corrupt, ErrorCode::Corrupt,
       true, true},
  };
  for (const auto& test : cases) {
    const auto outcome = answer_with(test.answer);
    EXPECT_EQ(outcome.failure, test.want_failure) << test.name;
    ASSERT_TRUE(outcome.error) << test.name;
    EXPECT_EQ(outcome.error->code, test.want_code) << test.name;
    EXPECT_EQ(outcome.error->blame, Blame::Worker) << test.name;
    EXPECT_EQ(outcome.error->retryable, !test.want_response_begun) << test.name;
    EXPECT_EQ(outcome.error->message.find("127.0"), std::string::npos) << test.name;
    EXPECT_EQ(outcome.started, test.want_started) << test.name;
    EXPECT_EQ(outcome.response_begun, test.want_response_begun) << test.name;
  }
}

TEST_F(ExchangeTest, ReturnsTheDataBeforeABrokenBody) {
  const auto outcome =
      answer_with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n");
  EXPECT_EQ(outcome.body, "ab");
  EXPECT_EQ(outcome.failure, Failure::Corrupt);
}

TEST_F(ExchangeTest, ReportsThatNothingListens) {
  auto request = call();
  listener_.close();
  const auto outcome = run(request);
  EXPECT_EQ(outcome.failure, Failure::Connect);
  EXPECT_TRUE(outcome.refused);
  EXPECT_TRUE(outcome.error->retryable);
  EXPECT_FALSE(outcome.response_begun);
}

TEST_F(ExchangeTest, ReportsThatNoConnectionCameInTime) {
  const FullListener full;
  auto request = call();
  request.endpoint.port = full.port();
  request.timeouts.connect = milliseconds(100);
  const auto outcome = run(request);
  EXPECT_EQ(outcome.failure, Failure::Connect);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, ErrorCode::Timeout);
  EXPECT_TRUE(outcome.error->retryable);
  EXPECT_FALSE(outcome.refused);
}

TEST_F(ExchangeTest, ResolvesNamesAndReportsUnknownOnes) {
  serve([](RawListener& listener) {
    auto socket = listener.accept();
    for (int i = 0; i < 2; ++i) {
      socket.receive_until("body");
      socket.send(kHello);
    }
  });
  auto request = call();
  request.endpoint.host = "localhost";
  EXPECT_EQ(run(request).body, "hello");
  EXPECT_EQ(run(request).body, "hello");
  request.endpoint.host = "no-such-host.invalid";
  const auto outcome = run(request);
  EXPECT_EQ(outcome.failure, Failure::Connect);
  EXPECT_FALSE(outcome.refused);
}

TEST_F(ExchangeTest, TimesOutWaitingForTheFirstByteAndBetweenBytes) {
  std::atomic<int> ended = 0;
  serve([&](RawListener& listener) {
    for (const auto& start :
         {std::string(), std::string("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")}) {
      auto socket = listener.accept();
      socket.receive_until("body");
      socket.send(start);
      EXPECT_EQ(socket.receive(), "");  // our side closes
      ++ended;
    }
  });
  auto request = call();
  request.timeouts.first_byte = milliseconds(40);
  const auto first = run(request);
  EXPECT_EQ(first.failure, Failure::Timeout);
  EXPECT_FALSE(first.response_begun);
  EXPECT_TRUE(first.error->retryable);
  request = call();
  request.timeouts.between_bytes = milliseconds(40);
  const auto second = run(request);
  EXPECT_EQ(second.failure, Failure::Timeout);
  EXPECT_EQ(second.body, "abc");
  EXPECT_FALSE(second.error->retryable);
  EXPECT_TRUE(eventually([&] { return ended == 2; }));
}

TEST_F(ExchangeTest, TimesOutWhenTheServerDoesNotTakeTheRequest) {
  const std::string large(64U << 20U, 'x');
  const std::vector<std::string_view> pieces{large};
  std::promise<void> over;
  serve([&](RawListener& listener) {
    auto socket = listener.accept();
    over.get_future().wait();
  });
  auto request = call();
  request.body = pieces;
  request.timeouts.write = milliseconds(60);
  EXPECT_EQ(run(request).failure, Failure::Timeout);
  over.set_value();
}

TEST_F(ExchangeTest, LeavesUnreadDataWithTheServer) {
  std::atomic<std::size_t> sent = 0;
  serve([&](RawListener& listener) {
    auto socket = listener.accept();
    socket.receive_until("body");
    socket.send("HTTP/1.1 200 OK\r\n\r\n");
    const std::string block(65536, 'x');
    while (socket.send(block)) sent += block.size();
  });
  run_task(pool_, [&]() -> Task<void> {
    Exchange exchange(client_);
    const auto request = call();
    const auto started = co_await exchange.start(request);
    EXPECT_TRUE(started.ok());
    const auto piece = co_await exchange.read_some();
    EXPECT_TRUE(piece.ok());
    Gate later;
    Deadline deadline(pool_.deadlines(0), [&later] { later.open(); });
    deadline.set(milliseconds(200));
    co_await later.wait();
    constexpr std::size_t kKernelBuffersMax = 32U << 20U;
    EXPECT_LT(sent.load(), kKernelBuffersMax);
  });
}

TEST_F(ExchangeTest, CanBeCancelledWhileItWaits) {
  std::atomic<int> ended = 0;
  serve([&](RawListener& listener) {
    for (const auto& start :
         {std::string(), std::string("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")}) {
      auto socket = listener.accept();
      socket.receive_until("body");
      socket.send(start);
      EXPECT_EQ(socket.receive(), "");
      ++ended;
    }
  });
  for (int i = 1; i <= 2; ++i) {
    Outcome outcome;
    run_task(pool_, [&]() -> Task<void> {
      Exchange exchange(client_);
      Deadline deadline(pool_.deadlines(0), [&exchange] { exchange.cancel(); });
      if (i == 1) deadline.set(milliseconds(50));
      const auto request = call();
      const auto started = co_await exchange.start(request);
      outcome.started = started.ok();
      if (i == 2) deadline.set(milliseconds(50));
      if (started.ok()) {
        const auto piece = co_await exchange.read_some();
        EXPECT_FALSE(piece.ok());
        EXPECT_EQ(piece.error().code, ErrorCode::Cancelled);
      }
      outcome.failure = exchange.failure();
    });
    EXPECT_EQ(outcome.started, i == 2);
    EXPECT_EQ(outcome.failure, Failure::Cancelled);
    EXPECT_TRUE(eventually([&] { return ended == i; }));
  }
}

TEST_F(ExchangeTest, CanBeCancelledBeforeItStarts) {
  run_task(pool_, [&]() -> Task<void> {
    Exchange exchange(client_);
    exchange.cancel();
    const auto request = call();
    const auto started = co_await exchange.start(request);
    EXPECT_FALSE(started.ok());
    EXPECT_EQ(exchange.failure(), Failure::Cancelled);
  });
}

TEST_F(ExchangeTest, ReadsAWholeBodyUpToALimit) {
  serve([](RawListener& listener) {
    for (int i = 0; i < 2; ++i) {
      auto socket = listener.accept();
      socket.receive_until("body");
      socket.send("HTTP/1.1 200 OK\r\n\r\nhello");
    }
  });
  for (const std::size_t bytes_max : {5U, 4U}) {
    run_task(pool_, [&]() -> Task<void> {
      Exchange exchange(client_);
      const auto request = call();
      const auto started = co_await exchange.start(request);
      EXPECT_TRUE(started.ok());
      const auto body = co_await read_all(exchange, bytes_max);
      EXPECT_EQ(body.ok(), bytes_max == 5);
      if (!body.ok()) {
        EXPECT_EQ(body.error().code, ErrorCode::TooLarge);
      }
    });
  }
}

}  // namespace
}  // namespace sightline::http
