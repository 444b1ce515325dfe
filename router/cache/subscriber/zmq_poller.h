// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sightline::subscriber {

// Waits for any number of ZMQ sockets at a cost that does not grow with their number.
//
// libzmq says by a file descriptor that a socket's state has changed, not that it is readable:
// whoever is told a token reads that socket until it is empty, or says look_again().
// Thread safety: wake() from any thread, the rest from the one that owns the sockets.
class ZmqPoller {
 public:
  ZmqPoller();
  ~ZmqPoller();
  ZmqPoller(const ZmqPoller&) = delete;
  ZmqPoller& operator=(const ZmqPoller&) = delete;
  // False when the process has no file descriptors left.
  [[nodiscard]] bool ok() const { return epoll_ >= 0 && wake_up_ >= 0; }

  // Tokens are below kTokenMax. A socket is forgotten before it is closed.
  static constexpr std::uint64_t kTokenMax = ~std::uint64_t{0};
  void watch(void* socket, std::uint64_t token);
  void forget(void* socket);
  // The socket may hold more than has been read.
  void look_again(std::uint64_t token) { again_.push_back(token); }

  void wake() const;
  // Tokens of the sockets to read now, until the next call; none when woken or when the time is
  // up (negative: no end).
  std::span<const std::uint64_t> wait(std::int64_t timeout_ms);

 private:
  const int epoll_;
  const int wake_up_;
  std::vector<std::uint64_t> again_;
  std::vector<std::uint64_t> ready_;
};

}  // namespace sightline::subscriber
