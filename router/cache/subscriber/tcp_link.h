// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/clock.h"

namespace sightline::subscriber {

// A TCP connection of libzmq, observed through its descriptor. libzmq may close it at any time, and
// another socket may then get the same number. So the class compares the kernel's cookie of the
// socket, which is never reused.
class TcpLink {
 public:
  // Empty if the descriptor is not TCP, or is closed.
  static std::optional<TcpLink> of(int descriptor);

  // What look() found.
  struct Arrivals {
    // The time since the last data came.
    std::chrono::milliseconds silence{0};
    // Bytes since the last look().
    std::uint64_t bytes_arrived = 0;
    // Bytes that wait in the kernel, of all that arrived.
    std::uint64_t bytes_in_kernel = 0;
  };
  // Returns the state of the connection. Empty if it is closed.
  std::optional<Arrivals> look();
  // Ends the connection, if it still exists. libzmq then detects the end.
  void shut() const;

 private:
  TcpLink(int descriptor, std::uint64_t cookie) : descriptor_(descriptor), cookie_(cookie) {}
  int descriptor_;
  std::uint64_t cookie_;
  std::uint64_t bytes_total_ = 0;
};

// Counts the bytes of one socket's messages that libzmq holds. libzmq's own limit counts whole
// messages, so it does not limit a message whose frames never end. The count is the bytes that
// arrived over the network minus the bytes received from libzmq.
class UnreadBytes {
 public:
  // `frame_bytes_max` is the socket's limit for one frame.
  explicit UnreadBytes(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  struct Arrived {
    // Bytes since the last call. `in_kernel` of them are not yet read by libzmq.
    std::uint64_t bytes = 0;
    std::uint64_t in_kernel = 0;
  };
  // Returns true if libzmq holds more than a rank ever sends. taken_total: bytes received in the
  // socket's life. has_message: a whole message waits.
  bool is_too_much(const Arrived& arrived, std::uint64_t taken_total, Duration passed,
                   bool has_message);
  // Begins again with a new connection.
  void clear() { held_ = 0; }

 private:
  std::size_t frame_bytes_max_;
  std::uint64_t taken_total_ = 0;
  std::uint64_t held_ = 0;
};

}  // namespace sightline::subscriber
