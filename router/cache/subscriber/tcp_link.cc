// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/tcp_link.h"

#include <algorithm>
#include <utility>

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sightline::subscriber {

namespace {

// Heartbeats are no messages. Each has about 7 bytes.
constexpr std::uint64_t kOverheadBytesPerSecond = 64;
// How many frames of the largest size libzmq may hold. One may be incomplete. Several may wait
// while the router does not read them. kSlackBytes is for small frames.
constexpr std::uint64_t kWaitingFramesMax = 4;
constexpr std::uint64_t kSlackBytes = 16U << 20U;

std::optional<std::uint64_t> cookie_of(int descriptor) {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

std::optional<tcp_info> info_of(int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return info;
}

}  // namespace

std::optional<TcpLink> TcpLink::of(int descriptor) {
  const auto cookie = cookie_of(descriptor);
  if (!cookie || !info_of(descriptor)) return std::nullopt;
  return TcpLink(descriptor, *cookie);
}

std::optional<TcpLink::Arrivals> TcpLink::look() {
  const auto info = info_of(descriptor_);
  int unread = 0;
  const bool is_known = ioctl(descriptor_, FIONREAD, &unread) == 0;
  // Compares the cookie last. If the descriptor still belongs to this socket, the values above do
  // too.
  if (!info || !is_known || cookie_of(descriptor_) != cookie_) return std::nullopt;
  const std::uint64_t total = info->tcpi_bytes_received;
  Arrivals news{.silence = std::chrono::milliseconds(info->tcpi_last_data_recv),
                .bytes_arrived = total - std::min(total, bytes_total_),
                .bytes_in_kernel = static_cast<std::uint64_t>(unread)};
  bytes_total_ = total;
  return news;
}

void TcpLink::shut() const {
  const int copy = dup(descriptor_);  // the copy keeps its socket
  if (copy < 0) return;
  if (cookie_of(copy) == cookie_) shutdown(copy, SHUT_RDWR);
  close(copy);
}

bool UnreadBytes::is_too_much(const Arrived& arrived, std::uint64_t taken_total, Duration passed,
                              bool has_message) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(passed).count() + 1;
  const auto gone = taken_total - std::exchange(taken_total_, taken_total) +
                    kOverheadBytesPerSecond * static_cast<std::uint64_t>(seconds);
  held_ += arrived.bytes;
  held_ -= std::min(held_, gone);
  const auto frames = has_message ? kWaitingFramesMax : 1;
  return held_ > frames * frame_bytes_max_ + kSlackBytes + arrived.in_kernel;
}

}  // namespace sightline::subscriber
