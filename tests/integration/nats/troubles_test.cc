// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
//
// A server that freezes, a reader that it disconnects, more messages than can be sent, and two
// connections at the same time.
#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/runtime/worker_thread.h"

#include "tests/integration/nats/peer.h"

namespace sightline::nats {
namespace {

using std::chrono_literals::operator""s;
using test::eventually;
using test::NatsServer;

double ms_of(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

TEST(Troubles, DetectsAFrozenServerByPingsAndReconnects) {
  NatsServer server;
  Peer peer(server.url());
  peer.connection->subscribe("a", peer.inbox);
  ASSERT_EQ(peer.next(), "+");
  server.freeze();
  const Instant frozen = system_clock().now();
  EXPECT_EQ(peer.next(), "-");
  const Duration seen = system_clock().now() - frozen;
  // Two pings may be unanswered. At the time of the third one the connection is lost.
  EXPECT_GE(seen, 20s);
  EXPECT_LE(seen, 32s);
  EXPECT_TRUE(peer.connection->away_since());
  server.thaw();
  EXPECT_EQ(peer.next(), "+");
  EXPECT_TRUE(peer.connection->publish("a", "x"));
  EXPECT_EQ(peer.next(), "x");
  std::cout << "a frozen server is seen after " << ms_of(seen) << " ms\n";
}

struct Filled {
  std::size_t taken = 0;
  Duration longest{};
};
// Publishes 1 MiB at a time until one is refused.
Filled fill(Connection& connection) {
  const std::string payload(1U << 20U, 'x');
  Filled filled;
  for (bool is_taken = true; is_taken && filled.taken < 1'000;) {
    const Instant begin = system_clock().now();
    is_taken = connection.publish("a", payload);
    filled.longest = std::max(filled.longest, system_clock().now() - begin);
    if (is_taken) ++filled.taken;
  }
  return filled;
}

TEST(Troubles, AFrozenServerCausesRefusedMessagesAndALostConnection) {
  NatsServer server;
  Peer peer(server.url());
  peer.connection->subscribe("a", peer.inbox);
  ASSERT_EQ(peer.next(), "+");
  // On a busy machine the waiting write may end before a publication is refused. Then it is tried
  // again.
  bool is_full = false;
  for (int attempts = 0; !is_full && attempts < 20; ++attempts) {
    server.freeze();
    const Filled filled = fill(*peer.connection);
    EXPECT_LE(filled.taken << 20U, 2 * Connection::kWaitingBytesMax);
    is_full = peer.has("reason=\"waiting-full\"} 1");
    // The waiting write is dropped and reported as a gap.
    EXPECT_EQ(peer.next(), "-");
    server.thaw();
    EXPECT_EQ(peer.next(), "+");
    std::cout << filled.taken << " MiB taken by a frozen server's connection, longest publish "
              << ms_of(filled.longest) << " ms\n";
  }
  EXPECT_TRUE(is_full);
  EXPECT_TRUE(peer.connection->publish("a", "x"));
  EXPECT_EQ(peer.next(), "x");
}

// A link between one client at a time and the server. While it is held, it reads nothing from the
// server.
class SlowLink {
 public:
  explicit SlowLink(const NatsServer& server)
      : server_port_(std::stoi(server.url().substr(server.url().rfind(':') + 1))) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_, 4) != 0 ||
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no port");
    }
    port_ = ntohs(address.sin_port);
    thread_.emplace("link", [this](const std::stop_token& stop) {
      while (!stop.stop_requested()) carry_one(stop);
    });
  }
  ~SlowLink() {
    thread_.reset();
    close(listener_);
  }
  SlowLink(const SlowLink&) = delete;
  SlowLink& operator=(const SlowLink&) = delete;

  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  void hold(bool holds) { holds_ = holds; }

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static bool is_readable(int socket_fd) {
    pollfd one{.fd = socket_fd, .events = POLLIN, .revents = 0};
    return poll(&one, 1, 5) > 0;
  }
  // Returns false if the connection ended.
  static bool carry(int from, int to) {
    if (!is_readable(from)) return true;
    std::array<char, 1U << 16U> piece{};
    const auto size = recv(from, piece.data(), piece.size(), 0);
    return size > 0 && send(to, piece.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) == size;
  }
  void carry_one(const std::stop_token& stop) {
    if (!is_readable(listener_)) return;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(server_port_);
    bool is_open =
        connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    while (is_open && !stop.stop_requested()) {
      is_open = carry(client, server) && (holds_ || carry(server, client));
    }
    close(client);
    close(server);
  }

  const int server_port_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> holds_ = false;
  std::optional<WorkerThread> thread_;
};

// No loss is silent: each missing message leaves a mark in its place.
TEST(Troubles, ADisconnectedSlowReaderGetsAGap) {
  const NatsServer server("max_payload: 150000\nmax_pending: 200000\nwrite_deadline: \"1s\"");
  SlowLink link(server);
  Peer reader(link.url());
  Peer writer(server.url());
  reader.connection->subscribe("a", reader.inbox);
  ASSERT_EQ(reader.next(), "+");
  ASSERT_TRUE(eventually([&] { return writer.connection->connected(); }));
  ASSERT_TRUE(writer.connection->publish("a", "0"));
  EXPECT_EQ(reader.next(), "0");
  link.hold(true);
  // Far more than the sockets on the way hold.
  const std::string filling(100'000, 'x');
  constexpr int kFar = 300;
  for (int i = 1; i <= kFar; ++i) {
    ASSERT_TRUE(writer.connection->publish("a", std::to_string(i) + ":" + filling));
  }
  ASSERT_TRUE(eventually([&] {
    return writer.has("nats_messages_total{connection=\"control\",direction=\"out\"} " +
                      std::to_string(kFar + 1));
  }));
  const auto server_log = [&] {
    std::ostringstream text;
    text << std::ifstream(server.directory() + "/log").rdbuf();
    return text.str();
  };
  ASSERT_TRUE(eventually([&] { return server_log().find("Slow Consumer") != std::string::npos; }));
  link.hold(false);
  int last = 0;
  std::string event = reader.next();
  while (event != "-") {
    ASSERT_EQ(std::stoi(event), ++last) << "before the gap nothing is missing";
    event = reader.next();
  }
  EXPECT_LT(last, kFar);
  EXPECT_EQ(reader.next(), "+");
  ASSERT_TRUE(writer.connection->publish("a", "after"));
  EXPECT_EQ(reader.next(), "after");
}

TEST(Troubles, AFloodOfEventsDelaysNoQuestion) {
  const NatsServer server;
  Peer control(server.url());
  Peer events(server.url(), {}, {}, Sending::InBatches);
  control.connection->subscribe("control", control.inbox);
  events.connection->subscribe("events", events.inbox);
  ASSERT_EQ(control.next(), "+");
  ASSERT_EQ(events.next(), "+");
  constexpr int kEvents = 20'000;
  const std::string filling(500, 'x');
  for (int i = 0; i < kEvents; ++i) {
    ASSERT_TRUE(events.connection->publish("events", std::to_string(i) + ":" + filling));
  }
  const Instant begin = system_clock().now();
  ASSERT_TRUE(control.connection->publish("control", "question"));
  EXPECT_EQ(control.next(), "question");
  const Duration answered = system_clock().now() - begin;
  for (int i = 0; i < kEvents; ++i) ASSERT_EQ(std::stoi(events.next()), i);
  EXPECT_LT(answered, 5s);
  EXPECT_TRUE(control.has("nats_connected{connection=\"control\"} 1"));
  EXPECT_TRUE(events.has("nats_connected{connection=\"events\"} 1"));
  std::cout << "a question beside " << kEvents << " events: " << ms_of(answered) << " ms\n";
}

// NATS's receiving thread may be at a message of just this subject.
TEST(Troubles, SubjectsAndConnectionsCanEndDuringAFlood) {
  const NatsServer server;
  Peer writer(server.url(), {}, {}, Sending::InBatches);
  ASSERT_TRUE(eventually([&] { return writer.connection->connected(); }));
  WorkerThread flood("flood", [&](const std::stop_token& stop) {
    const std::string filling(100, 'x');
    while (!stop.stop_requested()) writer.connection->publish("events", filling);
  });
  for (int i = 0; i < 60; ++i) {
    Peer reader(server.url());
    for (int j = 0; j < 20; ++j) {
      reader.connection->subscribe("events", reader.inbox);
      ASSERT_NE(reader.next(), "nothing");
      reader.connection->unsubscribe("events", reader.inbox);
    }
    reader.connection->subscribe("events", reader.inbox);
    ASSERT_NE(reader.next(), "nothing");
  }
  flood.request_stop();
  flood.join();
}

}  // namespace
}  // namespace sightline::nats
