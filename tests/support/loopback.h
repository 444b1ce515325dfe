// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sightline::test {

// A TCP socket on 127.0.0.1. The destructor closes it.
class Socket {
 public:
  Socket() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

  // Returns false if nothing listens. From then on, a read gives up after a minute of silence.
  [[nodiscard]] bool connect_to(std::uint16_t port) const {
    const timeval limit{60, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    const sockaddr_in address = loopback(port);
    return connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  // Stops silently if the peer has closed.
  void send_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // Returns all bytes until the peer closes, or is silent for a minute.
  [[nodiscard]] std::string receive_all() const {
    std::string answer;
    std::array<char, 16384> buffer{};
    for (;;) {
      const auto got = recv(fd_, buffer.data(), buffer.size(), 0);
      if (got <= 0) return answer;
      answer.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

 private:
  int fd_;
};

// Occupies a free port and accepts no connection: the kernel completes connections, and no byte
// ever comes.
class ListeningSocket {
 public:
  ListeningSocket() {
    sockaddr_in address = Socket::loopback(0);
    socklen_t size = sizeof address;
    bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&address), size);
    getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&address), &size);
    listen(socket_.fd(), 64);
    port_ = ntohs(address.sin_port);
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int fd() const { return socket_.fd(); }

 private:
  Socket socket_;
  std::uint16_t port_ = 0;
};

// Sends the bytes. Returns all that comes until the peer closes or is silent for a minute, or "no
// connection" if nothing listens.
inline std::string exchange_bytes(std::uint16_t port, std::string_view bytes) {
  const Socket socket;
  if (!socket.connect_to(port)) return "no connection";
  socket.send_all(bytes);
  return socket.receive_all();
}

// Sends the bytes and closes immediately.
inline void send_and_leave(std::uint16_t port, std::string_view bytes) {
  const Socket socket;
  if (socket.connect_to(port)) socket.send_all(bytes);
}

// The status is 0 if the head of the answer is not whole. Then `head` has all that came.
struct HttpAnswer {
  int status = 0;
  std::string head;
  std::string body;
};

// One HTTP/1.1 request on its own connection.
inline HttpAnswer http_exchange(std::uint16_t port, const std::string& method,
                                const std::string& target, const std::string& body = "") {
  const std::string answer = exchange_bytes(
      port, method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::size_t end = answer.find("\r\n\r\n");
  if (end == std::string::npos) return {0, answer, ""};
  return {std::stoi(answer.substr(9, 3)), answer.substr(0, end), answer.substr(end + 4)};
}

}  // namespace sightline::test
