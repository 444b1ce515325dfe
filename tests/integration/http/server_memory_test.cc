// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// What connections are charged for.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/integration/http/server_fixture.h"

namespace sightline::http {
namespace {

constexpr std::size_t kHeaderBytes = 30'000;
// The first client keeps its place until the last one is there.
constexpr std::chrono::minutes kUnhurried{10};

class ServerMemoryTest : public ServerTest {
 protected:
  ~ServerMemoryTest() override { server_.reset(); }

  void start_charging(const ServerLimits& limits = {}) {
    auto answer = [](Request&, ResponseWriter& writer) -> Task<void> {
      Response response;
      static_cast<void>(co_await writer.send(std::move(response)));
    };
    auto server =
        Server::create(pool_, {.limits = limits, .connection_memory = &memory_}, std::move(answer));
    ASSERT_TRUE(server.ok());
    server_ = std::move(server).value();
  }
  // Of this process.
  static std::size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;
    file >> pages >> pages;
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  }
  static std::string endless(std::size_t bytes) {
    return "GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(bytes, 'a');
  }

  ByteBudget memory_{32 * kConnectionBytes, {.limit = "memory-bytes-max"}};
};

TEST_F(ServerMemoryTest, AConnectionIsChargedForItselfAndItsHeader) {
  start_charging();
  {
    auto first = connect();
    EXPECT_TRUE(eventually([&] { return memory_.held() == kConnectionBytes; }));
    auto second = connect();
    second.send(endless(kHeaderBytes));
    EXPECT_TRUE(
        eventually([&] { return memory_.held() >= 2 * kConnectionBytes + kHeaderBytes - 4096; }));
  }
  EXPECT_TRUE(eventually([&] { return memory_.held() == 0; }));
}

TEST_F(ServerMemoryTest, AHeaderIsReleasedWithItsRequest) {
  start_charging();
  auto client = connect();
  for (int i = 0; i < 3; ++i) {
    client.send(endless(kHeaderBytes) + "\r\n\r\n");
    EXPECT_TRUE(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
    EXPECT_TRUE(eventually([&] { return memory_.held() == kConnectionBytes; }));
  }
}

TEST_F(ServerMemoryTest, AHeaderWithoutRoomIsRefusedWithTheLimitsName) {
  start_charging({.header_timeout = kUnhurried});
  constexpr std::size_t kFit = 8;
  constexpr std::size_t kOfOne = kConnectionBytes + (28U << 10U);  // a buffer of 4 KiB, then 32
  std::vector<RawSocket> held;
  while (held.size() < kFit) {
    held.push_back(connect());
    held.back().send(endless(kHeaderBytes));
    EXPECT_TRUE(eventually([&] { return memory_.held() == held.size() * kOfOne; }));
  }
  auto more = connect();
  more.send(endless(kHeaderBytes));
  const std::string refusal = more.receive_all();
  EXPECT_TRUE(refusal.starts_with("HTTP/1.1 503 ")) << refusal;
  EXPECT_NE(refusal.find("memory-bytes-max"), std::string::npos);
}

TEST_F(ServerMemoryTest, WithoutRoomTheLongestIdleConnectionMakesRoom) {
  start_charging();
  auto longest = connect();
  EXPECT_TRUE(eventually([&] { return memory_.held() == kConnectionBytes; }));
  std::vector<RawSocket> others;
  for (std::size_t i = 1; i <= 32; ++i) {
    others.push_back(connect());
    const std::size_t connections = std::min<std::size_t>(i + 1, 32);
    EXPECT_TRUE(eventually([&] { return memory_.held() == connections * kConnectionBytes; }));
  }
  EXPECT_EQ(longest.receive_all(), "");
  others.back().send(kGet);
  EXPECT_TRUE(others.back().receive_until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_F(ServerMemoryTest, OneMoreConnectionGetsTheLimitIfAllAreBusy) {
  start_charging({.header_timeout = kUnhurried});
  std::vector<RawSocket> busy;
  for (std::size_t i = 1; i <= 32; ++i) {
    busy.push_back(connect());
    busy.back().send("G");
    EXPECT_TRUE(eventually([&] { return memory_.held() == i * kConnectionBytes; }));
  }
  auto more = connect();
  const std::string refusal = more.receive_all();
  EXPECT_TRUE(refusal.starts_with("HTTP/1.1 503 ")) << refusal;
  EXPECT_NE(refusal.find("memory-bytes-max"), std::string::npos);
}

TEST_F(ServerMemoryTest, ARefusedBodyIsReleasedBeforeItsClientLeaves) {
  constexpr std::size_t kMiB = std::size_t{1} << 20U;
  // The first one keeps its place to the end, even if the others take long.
  start_charging(
      {.body_bytes_max = 64 * kMiB, .total_body_bytes_max = 64 * kMiB, .body_timeout = kUnhurried});
  const std::string head =
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(60 * kMiB) + "\r\n\r\n";
  const std::string part(24 * kMiB, 'x');
  // Little arrives after the refusal: the server reads on for at most ten seconds.
  const std::string_view too_much = std::string_view(part).substr(0, 17 * kMiB);
  auto first = connect();
  first.send(head + part);
  const std::size_t before = resident_bytes();
  std::vector<RawSocket> refused;
  for (int i = 0; i < 8; ++i) {
    refused.push_back(connect());
    for (const auto& text : {std::string_view(head), std::string_view(part), too_much}) {
      refused.back().send(text);
    }
    EXPECT_TRUE(refused.back().receive_until("\r\n\r\n").starts_with("HTTP/1.1 503 "));
  }
  EXPECT_LT(resident_bytes(), before + 96 * kMiB) << "of eight that had 40 MiB each";
}

}  // namespace
}  // namespace sightline::http
