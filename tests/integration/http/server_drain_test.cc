// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <atomic>
#include <chrono>
#include <future>
#include <string>

#include <gtest/gtest.h>

#include "common/runtime/worker_thread.h"

#include "tests/integration/http/server_fixture.h"

namespace sightline::http {
namespace {

using ServerDrainTest = ServerTest;

TEST_F(ServerDrainTest, DrainsByFinishingRequestsAndClosingIdleConnections) {
  std::atomic<bool> waiting = false;
  std::atomic<Gate*> open = nullptr;
  std::atomic<std::size_t> thread = 0;
  auto wait = [&](Request&, ResponseWriter& writer) -> Task<void> {
    Gate gate;
    thread = pool_.index_here();
    open = &gate;
    waiting = true;
    co_await gate.wait();
    Response empty;
    static_cast<void>(co_await writer.send(std::move(empty)));
  };
  start(wait);
  auto idle = connect();
  auto busy = connect();
  busy.send(kGet);
  ASSERT_TRUE(eventually([&] { return waiting.load(); }));
  std::atomic<bool> all_ended = false;
  WorkerThread drainer("drain", [&](const std::stop_token&) {
    all_ended = server_->drain(std::chrono::duration_cast<Duration>(fakes::kPatience));
  });
  EXPECT_EQ(idle.receive_all(), "");
  asio::post(pool_.context(thread), [&] { open.load()->open(); });
  EXPECT_EQ(busy.receive_all(),
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
  drainer.join();
  EXPECT_TRUE(all_ended);
}

TEST_F(ServerDrainTest, OutlastsAThreadThatMayStillAcceptAClient) {
  start_echo();
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future();
  for (std::size_t i = 0; i < pool_.size(); ++i) {
    asio::post(pool_.context(i), [gone] { gone.wait(); });
  }
  auto client = connect();
  client.send(kGet);
  auto drained = std::async(std::launch::async, [&] {
    return server_->drain(std::chrono::duration_cast<Duration>(fakes::kPatience));
  });
  EXPECT_EQ(drained.wait_for(milliseconds(100)), std::future_status::timeout);
  go.set_value();
  EXPECT_TRUE(client.receive_all().starts_with("HTTP/1.1 200 "));
  EXPECT_TRUE(drained.get());
}

TEST_F(ServerDrainTest, CutsRequestsThatOutlastTheDrain) {
  Departure departure;
  start(departure.handler());
  auto client = connect();
  client.send(kGet);
  ASSERT_TRUE(eventually([&] { return departure.seen->waiting.load(); }));
  EXPECT_FALSE(server_->drain(milliseconds(50)));
  EXPECT_TRUE(departure.seen->noticed);
  EXPECT_TRUE(client.receive_all().starts_with("HTTP/1.1 503 "));
}

TEST_F(ServerDrainTest, CutsRequestsImmediatelyWithoutTimeToDrain) {
  Departure departure;
  start(departure.handler());
  auto client = connect();
  client.send(kGet);
  ASSERT_TRUE(eventually([&] { return departure.seen->waiting.load(); }));
  server_.reset();
  EXPECT_TRUE(departure.seen->noticed);
}

TEST_F(ServerDrainTest, LetsAHandlerReportTheStopToItsClient) {
  std::atomic<bool> waiting = false;
  auto stream = [&](Request&, ResponseWriter& writer) -> Task<void> {
    Headers none;
    static_cast<void>(co_await writer.begin(200, std::move(none)));
    Gate gone;
    writer.on_disconnect([&gone] { gone.open(); });
    waiting = true;
    co_await gone.wait();
    EXPECT_TRUE(writer.cut_off() && !writer.disconnected());
    static_cast<void>(co_await writer.write("sorry"));
    static_cast<void>(co_await writer.finish());
  };
  start(stream);
  auto client = connect();
  client.send(kGet);
  ASSERT_TRUE(eventually([&] { return waiting.load(); }));
  EXPECT_FALSE(server_->drain(milliseconds(50)));
  EXPECT_TRUE(client.receive_all().ends_with("5\r\nsorry\r\n0\r\n\r\n"));
}

TEST_F(ServerDrainTest, ClosesTheConnectionOfAHandlerThatIgnoresTheCut) {
  std::atomic<bool> waiting = false;
  auto stubborn = [&](Request&, ResponseWriter& writer) -> Task<void> {
    waiting = true;
    while (!writer.disconnected()) {
      Gate later;
      Deadline soon(pool_.deadlines(pool_.index_here()), [&later] { later.open(); });
      soon.set(milliseconds(20));
      co_await later.wait();
    }
  };
  start(stubborn);
  auto client = connect();
  client.send(kGet);
  ASSERT_TRUE(eventually([&] { return waiting.load(); }));
  EXPECT_FALSE(server_->drain(milliseconds(50)));
  EXPECT_EQ(client.receive_all(), "");
}

TEST_F(ServerDrainTest, DoesNotLetAStalledRequestHoldUpTheStop) {
  for (const std::string_view part :
       {"POST / HTTP/1.1\r\nHost", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"}) {
    start_echo();
    auto stalled = connect();
    stalled.send(part);
    auto other = connect();
    other.send(kGet);
    other.receive_until("GET /a?b=c ");
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(server_->drain(std::chrono::duration_cast<Duration>(fakes::kPatience)));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, fakes::kPatience / 2);
    EXPECT_TRUE(stalled.receive_all().starts_with("HTTP/1.1 503 ")) << part;
  }
}

TEST_F(ServerDrainTest, AnswersARequestThatArrivesJustAfterTheStop) {
  start_echo();
  auto used = connect();
  used.send(kGet);
  used.receive_until("GET /a?b=c ");
  auto fresh = connect();
  auto busy = connect();
  busy.send(kGet);
  busy.receive_until("GET /a?b=c ");
  WorkerThread drainer("drain", [&](const std::stop_token&) {
    EXPECT_TRUE(server_->drain(std::chrono::duration_cast<Duration>(fakes::kPatience)));
  });
  ASSERT_TRUE(eventually([&] {
    busy.send(kGet);
    return busy.receive_until("GET /a?b=c ").find("connection: close") != std::string::npos;
  }));
  // Sends both before either is read: an idle connection has a second.
  for (auto* const client : {&used, &fresh}) client->send(kGet);
  for (auto* const client : {&used, &fresh}) {
    const auto answer = client->receive_all();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
    EXPECT_NE(answer.find("connection: close"), std::string::npos) << answer;
  }
  drainer.join();
}

}  // namespace
}  // namespace sightline::http
