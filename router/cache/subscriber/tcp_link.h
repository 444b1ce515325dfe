// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/clock.h"

namespace sightline::subscriber {

// A TCP connection that is libzmq's, seen through its descriptor. libzmq may close it at any time,
// and the number may be another socket's then: the kernel's cookie of a socket, which is never used
// again, tells.
class TcpLink {
 public:
  // Nothing: it is not TCP, or gone.
  static std::optional<TcpLink> of(int descriptor);

  struct Arrivals {
    std::chrono::milliseconds silence{0};  // since data came last
    std::uint64_t bytes_arrived = 0;       // since the last look
    std::uint64_t bytes_in_kernel = 0;     // of all, that wait there
  };
  // Nothing: it is gone.
  std::optional<Arrivals> look();
  // Ends the connection, if it is still there; libzmq then finds it ended.
  void shut() const;

 private:
  TcpLink(int descriptor, std::uint64_t cookie) : descriptor_(descriptor), cookie_(cookie) {}
  int descriptor_;
  std::uint64_t cookie_;
  std::uint64_t bytes_total_ = 0;
};

// How much libzmq holds of one socket's messages. Its own limit counts whole messages, so that one
// whose frames never end is not bounded by it. What has arrived over the network less what was
// received from libzmq is what it holds.
class UnreadBytes {
 public:
  explicit UnreadBytes(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  struct Arrived {
    std::uint64_t bytes = 0;      // since the last call
    std::uint64_t in_kernel = 0;  // that libzmq has not got
  };
  // taken_total: of the socket's life. has_message: a whole one waits.
  bool is_too_much(const Arrived& arrived, std::uint64_t taken_total, Duration passed,
                   bool has_message);
  void clear() { held_ = 0; }

 private:
  std::size_t frame_bytes_max_;
  std::uint64_t taken_total_ = 0;
  std::uint64_t held_ = 0;
};

}  // namespace sightline::subscriber
