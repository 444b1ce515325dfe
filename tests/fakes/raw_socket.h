// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/check.h"

#include "tests/fakes/run_task.h"

namespace sightline::fakes {

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A blocking TCP connection that sends and receives exactly the bytes a test wants.
class RawSocket {
 public:
  explicit RawSocket(int fd) : fd_(fd) {
    const timeval patience{kPatience.count(), 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RawSocket& operator=(RawSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~RawSocket() { close(); }

  static bool listens(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(port);
    const bool accepted =
        ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(fd);
    return accepted;
  }
  static RawSocket connect(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = loopback(port);
    SL_CHECK(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return RawSocket(fd);
  }

  // False if the peer is gone.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Some bytes; empty at the end of the stream or on a reset.
  std::string receive() {
    std::array<char, 65536> buffer;
    const auto got = ::recv(fd_, buffer.data(), buffer.size(), 0);
    return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
  }

  // Everything up to and with the marker, or up to the end of the stream.
  std::string receive_until(std::string_view marker) {
    auto& text = ahead_;
    for (;;) {
      const auto at = text.find(marker);
      if (at != std::string::npos) {
        auto result = text.substr(0, at + marker.size());
        text.erase(0, at + marker.size());
        return result;
      }
      const auto more = receive();
      if (more.empty()) return std::exchange(text, {});
      text += more;
    }
  }

  // Everything up to the end of the stream.
  std::string receive_all() {
    auto text = std::exchange(ahead_, {});
    for (auto more = receive(); !more.empty(); more = receive()) text += more;
    return text;
  }

  void end_sending() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // Closes with a reset.
  void reset() {
    const linger at_once{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
  }

 private:
  int fd_;
  std::string ahead_;
};

// A listening socket on a free port of the loopback interface.
class RawListener {
 public:
  RawListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto address = loopback(0);
    socklen_t size = sizeof address;
    SL_CHECK(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    SL_CHECK(::listen(fd_, 64) == 0);
    SL_CHECK(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    const timeval patience{kPatience.count(), 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~RawListener() { close(); }
  RawListener(const RawListener&) = delete;
  RawListener& operator=(const RawListener&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Ends the program when nobody comes.
  RawSocket accept() {
    const int fd = ::accept(fd_, nullptr, nullptr);
    SL_CHECK(fd >= 0);
    return RawSocket(fd);
  }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

// A listener whose queue is full: the kernel drops further handshakes.
class FullListener {
 public:
  FullListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    auto address = loopback(0);
    socklen_t size = sizeof address;
    SL_CHECK(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
    SL_CHECK(::listen(socket_, 0) == 0);
    SL_CHECK(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    for (int& filler : fillers_) {
      filler = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      static_cast<void>(::connect(filler, reinterpret_cast<const sockaddr*>(&address), size));
    }
  }
  ~FullListener() {
    for (const int filler : fillers_) ::close(filler);
    ::close(socket_);
  }
  FullListener(const FullListener&) = delete;
  FullListener& operator=(const FullListener&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
  std::array<int, 8> fillers_{};
};

}  // namespace sightline::fakes
