// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors

// Small writes must leave immediately. With Nagle's algorithm, a second one waits for the peer's
// delayed acknowledgement: 40 ms on every first token.

#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/http/exchange.h"
#include "common/http/server.h"

#include "tests/fakes/raw_socket.h"
#include "tests/fakes/run_task.h"

namespace sightline::http {
namespace {

using fakes::RawListener;
using fakes::RawSocket;

// A connection of this process.
struct Socket {
  std::uint16_t local_port = 0;
  std::uint16_t peer_port = 0;
  bool no_delay = false;
};

std::optional<Socket> socket_of(int fd) {
  sockaddr_in local{};
  sockaddr_in peer{};
  socklen_t local_size = sizeof local;
  socklen_t peer_size = sizeof peer;
  int no_delay = 0;
  socklen_t size = sizeof no_delay;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size) != 0 ||
      ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0 ||
      ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &size) != 0) {
    return std::nullopt;
  }
  return Socket{ntohs(local.sin_port), ntohs(peer.sin_port), no_delay != 0};
}

template <class Wanted>
std::optional<Socket> find_socket(Wanted wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const auto fds = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 4096));
  for (int fd = 0; fd < fds; ++fd) {
    const auto socket = socket_of(fd);
    if (socket && wanted(*socket)) return socket;
  }
  return std::nullopt;
}

// Passes every request to the upstream and its answer back.
Task<void> pass_on(Client& client, const ServerAddress& upstream, ResponseWriter& writer) {
  Exchange exchange(client);
  const Call call{.endpoint = upstream, .head = {"GET", "/", {}}, .body = {}, .timeouts = {}};
  const auto started = co_await exchange.start(call);
  if (!started.ok()) co_return;
  auto body = co_await read_all(exchange, 100);
  if (!body.ok()) co_return;
  Response response;
  response.body = std::move(*body);
  const auto sent = co_await writer.send(std::move(response));
  static_cast<void>(sent);
}

TEST(NoDelay, SendsSmallWritesImmediatelyToClientsAndEngines) {
  IoPool pool({.io_threads = 1, .compute_threads = 1});
  Client client(pool, {});
  RawListener engine;
  const ServerAddress upstream{"127.0.0.1", engine.port()};
  auto answer = [&](Request&, ResponseWriter& writer) { return pass_on(client, upstream, writer); };
  auto server = Server::create(pool, {}, std::move(answer));
  ASSERT_TRUE(server.ok()) << server.error().message;
  auto asking = RawSocket::connect((*server)->port());
  asking.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  auto asked = engine.accept();
  ASSERT_FALSE(asked.receive_until("\r\n\r\n").empty());

  const auto to_client =
      find_socket([&](const Socket& socket) { return socket.local_port == (*server)->port(); });
  const auto to_engine =
      find_socket([&](const Socket& socket) { return socket.peer_port == engine.port(); });
  ASSERT_TRUE(to_client && to_engine);
  EXPECT_TRUE(to_client->no_delay);
  EXPECT_TRUE(to_engine->no_delay);

  asked.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  EXPECT_TRUE(asking.receive_until("ok").ends_with("ok"));
  (*server)->drain(Duration::zero());
  pool.stop();
}

}  // namespace
}  // namespace sightline::http
