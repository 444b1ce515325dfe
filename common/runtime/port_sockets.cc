// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/port_sockets.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sightline {
namespace {

// 0: no TCP socket.
std::uint16_t port_of(int descriptor) {
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &size) != 0) return 0;
  if (local.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in*>(&local)->sin_port);
  if (local.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&local)->sin6_port);
  return 0;
}

bool listens(int descriptor) {
  int is_listening = 0;
  socklen_t size = sizeof is_listening;
  return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 &&
         is_listening != 0;
}

// The directory of this process's descriptors; null: it cannot be read. Opened by hand: of
// opendir(), ThreadSanitizer sees the end and not the beginning.
struct Directory {
  Directory() {
    const int descriptor = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    stream = fdopendir(descriptor);
    if (stream == nullptr) close(descriptor);
  }
  ~Directory() {
    if (stream != nullptr) closedir(stream);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  DIR* stream = nullptr;
};

template <class Visitor>
void visit_sockets(std::uint16_t port, Visitor visit) {
  const Directory descriptors;
  if (descriptors.stream == nullptr) return;
  while (const dirent* entry = readdir(descriptors.stream)) {
    const std::string_view name = entry->d_name;
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);  // whose it is cannot change any more
    if (copy < 0) continue;
    if (port_of(copy) == port) visit(copy);
    // Unseen by ThreadSanitizer, as the copying is: to it, a close alone would be a race with what
    // a library, whose own opening and closing it leaves aside, did with that number before.
    syscall(SYS_close, copy);
  }
}

}  // namespace

void hold_off_connections(std::uint16_t port) {
  visit_sockets(port, [](int descriptor) {
    if (!listens(descriptor)) return;
    sock_filter nothing_passes{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
    const sock_fprog program{.len = 1, .filter = &nothing_passes};
    setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  });
}

bool have_waiting_connections(std::uint16_t port) {
  bool have = false;
  visit_sockets(port, [&have](int descriptor) {
    pollfd polled{.fd = descriptor, .events = POLLIN, .revents = 0};
    have = have || (listens(descriptor) && poll(&polled, 1, 0) > 0);
  });
  return have;
}

void end_accepting(std::uint16_t port, Duration longest, Duration settling) {
  const auto pause = [settling] {
    poll(nullptr, 0, static_cast<int>(settling / std::chrono::milliseconds(1)));
  };
  hold_off_connections(port);
  const Instant until = system_clock().now() + longest;
  while (have_waiting_connections(port) && system_clock().now() < until) pause();
  pause();
}

std::optional<std::uint16_t> free_port(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "0", &hints, &found) != 0) return std::nullopt;
  std::optional<std::uint16_t> port;
  const int socket_fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (socket_fd >= 0 && bind(socket_fd, found->ai_addr, found->ai_addrlen) == 0 &&
      getsockname(socket_fd, reinterpret_cast<sockaddr*>(&bound), &size) == 0) {
    std::array<char, NI_MAXSERV> service{};
    getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, service.data(),
                service.size(), NI_NUMERICSERV);
    port = static_cast<std::uint16_t>(std::strtoul(service.data(), nullptr, 10));
  }
  if (socket_fd >= 0) close(socket_fd);
  freeaddrinfo(found);
  return port;
}

void shut_connections(std::uint16_t port) {
  visit_sockets(port, [](int descriptor) {
    if (!listens(descriptor)) shutdown(descriptor, SHUT_RDWR);
  });
}

}  // namespace sightline
