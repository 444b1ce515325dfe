// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sightline::subscriber {

// Waits for any number of ZMQ sockets. The cost does not grow with their number.
//
// libzmq signals by a file descriptor that a socket's state has changed, not that it is readable.
// So the caller reads the socket of a returned token until it is empty, or calls look_again().
// Thread safety: any thread may call wake(). Only the owner of the sockets may call the other
// methods.
class ZmqPoller {
 public:
  ZmqPoller();
  ~ZmqPoller();
  ZmqPoller(const ZmqPoller&) = delete;
  ZmqPoller& operator=(const ZmqPoller&) = delete;
  // False if the process has no file descriptors left.
  [[nodiscard]] bool ok() const { return epoll_ >= 0 && wake_up_ >= 0; }

  // Tokens are below kTokenMax. Call forget() before you close a socket.
  static constexpr std::uint64_t kTokenMax = ~std::uint64_t{0};
  void watch(void* socket, std::uint64_t token);
  void forget(void* socket);
  // The next wait() returns this token again, because the socket may have more to read.
  void look_again(std::uint64_t token) { again_.push_back(token); }

  // Ends a wait().
  void wake() const;
  // Returns the tokens of the sockets to read, valid until the next call. Empty after wake() or
  // when the time is up. A negative time waits without end.
  std::span<const std::uint64_t> wait(std::int64_t timeout_ms);

 private:
  const int epoll_;
  const int wake_up_;
  // Tokens of look_again() since the last wait().
  std::vector<std::uint64_t> again_;
  std::vector<std::uint64_t> ready_;
};

}  // namespace sightline::subscriber
