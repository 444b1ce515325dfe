// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/zmq_poller.h"

#include <array>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "common/base/check.h"

namespace sightline::subscriber {

namespace {

constexpr std::size_t kEventsPerWait = 256;
constexpr std::uint64_t kWakeUp = ZmqPoller::kTokenMax;

int descriptor_of(void* socket) {
  int descriptor = -1;
  std::size_t size = sizeof descriptor;
  SL_CHECK(zmq_getsockopt(socket, ZMQ_FD, &descriptor, &size) == 0);
  return descriptor;
}

void add(int epoll, int descriptor, std::uint64_t token) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = token;
  SL_CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0);
}

}  // namespace

ZmqPoller::ZmqPoller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_up_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (ok()) add(epoll_, wake_up_, kWakeUp);
}

ZmqPoller::~ZmqPoller() {
  if (epoll_ >= 0) close(epoll_);
  if (wake_up_ >= 0) close(wake_up_);
}

void ZmqPoller::watch(void* socket, std::uint64_t token) {
  add(epoll_, descriptor_of(socket), token);
  look_again(token);  // libzmq may have consumed the signal when it opened the socket
}

// Called before the socket is closed, because libzmq closes the descriptor some time after it.
void ZmqPoller::forget(void* socket) {
  SL_CHECK(epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor_of(socket), nullptr) == 0);
}

void ZmqPoller::wake() const { eventfd_write(wake_up_, 1); }

std::span<const std::uint64_t> ZmqPoller::wait(std::int64_t timeout_ms) {
  // Tokens of look_again() are ready, so the wait must not block.
  ready_.clear();
  ready_.swap(again_);
  std::array<epoll_event, kEventsPerWait> events{};
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                               ready_.empty() ? static_cast<int>(timeout_ms) : 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t token = events[static_cast<std::size_t>(i)].data.u64;
    if (token != kWakeUp) {
      ready_.push_back(token);
      continue;
    }
    // Clears the signal. Otherwise the next wait would end immediately.
    eventfd_t cleared = 0;
    eventfd_read(wake_up_, &cleared);
  }
  return ready_;
}

}  // namespace sightline::subscriber
