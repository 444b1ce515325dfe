// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/check.h"

#include "tests/fakes/raw_socket.h"

namespace sightline::fakes {

inline std::uint16_t port_of(const std::string& endpoint) {
  return static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
}

// A ZMQ endpoint of the loopback interface that forwards to another one, until it is frozen. Then
// no byte passes and no connection closes, as if the host had vanished.
// Thread safety: all methods from any thread.
class Relay {
 public:
  explicit Relay(const std::string& endpoint)
      : target_(port_of(endpoint)), thread_([this](const std::stop_token& stop) { run(stop); }) {}
  ~Relay() { thread_.request_stop(); }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  [[nodiscard]] std::string endpoint() const { return "tcp://127.0.0.1:" + std::to_string(port_); }
  void freeze(bool frozen) { frozen_ = frozen; }
  // Closes all connections. Accepts new ones.
  void cut() { cut_ = true; }
  // Closed: the kernel accepts connections, but no process answers on them.
  void close_door(bool closed) { closed_ = closed; }

 private:
  static int listen_anywhere(std::uint16_t& port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto address = loopback(0);
    socklen_t size = sizeof address;
    SL_CHECK(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    SL_CHECK(::listen(fd, 64) == 0);
    SL_CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    return fd;
  }

  // False at the end of the stream.
  static bool forward(int from, int to) {
    std::array<char, 65536> buffer;
    const auto got = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN;
    return got > 0 && ::send(to, buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) == got;
  }

  void accept_one() {
    const int client = ::accept(listener_, nullptr, nullptr);
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(target_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ::close(client);
      ::close(server);
      return;
    }
    pairs_.emplace_back(client, server);
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> waiting;
      if (!frozen_) {
        waiting.push_back({listener_, POLLIN, 0});
        for (const auto& [client, server] : pairs_) {
          waiting.push_back({client, POLLIN, 0});
          waiting.push_back({server, POLLIN, 0});
        }
      }
      ::poll(waiting.data(), waiting.size(), 5);
      if (frozen_ || waiting.empty()) continue;
      const bool cut = cut_.exchange(false);
      pairs_.remove_if([cut](const auto& pair) {
        const bool open =
            !cut && forward(pair.first, pair.second) && forward(pair.second, pair.first);
        if (!open) {
          ::close(pair.first);
          ::close(pair.second);
        }
        return !open;
      });
      if (!closed_ && (waiting.front().revents & POLLIN) != 0) accept_one();
    }
    for (const auto& [client, server] : pairs_) {
      ::close(client);
      ::close(server);
    }
    ::close(listener_);
  }

  const std::uint16_t target_;
  std::uint16_t port_ = 0;
  const int listener_ = listen_anywhere(port_);
  std::atomic<bool> frozen_ = false;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> closed_ = false;
  std::list<std::pair<int, int>> pairs_;
  std::jthread thread_;
};

}  // namespace sightline::fakes
