// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/router/prompt/media/page_server.h"

#include <array>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/check.h"

namespace sightline::media {
namespace {

constexpr int kPollMs = 20;

// Returns true when the socket can be read, and false if a stop is requested first.
bool wait_readable(int socket, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd poll_socket{socket, POLLIN, 0};
    if (poll(&poll_socket, 1, kPollMs) > 0) return true;
  }
  return false;
}

}  // namespace

PageServer::PageServer(Answer answer) : answer_(std::move(answer)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  SL_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  SL_CHECK(listen(listener_, 64) == 0);
  SL_CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this](const std::stop_token& stop) { accept_all(stop); });
}

PageServer::~PageServer() {
  acceptor_.request_stop();
  acceptor_.join();
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  close(listener_);
}

std::string PageServer::url(const std::string& path, const std::string& host) const {
  return "http://" + host + ":" + std::to_string(port_) + path;
}

void PageServer::wait_for_requests(int count) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return requests_ >= count; });
}

void PageServer::accept_all(const std::stop_token& stop) {
  while (wait_readable(listener_, stop)) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    ++connections_;
    threads_.emplace_back([this, socket](const std::stop_token& own) { serve(socket, own); });
  }
}

void PageServer::serve(int socket, const std::stop_token& stop) {
  std::string seen;
  while (wait_readable(socket, stop)) {
    std::array<char, 4096> buffer{};
    const auto n = recv(socket, buffer.data(), buffer.size(), 0);
    if (n <= 0) break;
    seen.append(buffer.data(), static_cast<std::size_t>(n));
    const std::size_t end = seen.find("\r\n\r\n");
    if (end == std::string::npos) continue;
    const std::size_t path = seen.find(' ') + 1;
    answer_one(socket, seen.substr(path, seen.find(' ', path) - path), stop);
    seen.erase(0, end + 4);
    if (stop.stop_requested()) break;
  }
  close(socket);
}

void PageServer::answer_one(int socket, const std::string& path, const std::stop_token& stop) {
  const int open = ++open_;
  for (int most = open_max_; open > most && !open_max_.compare_exchange_weak(most, open);) {
  }
  {
    const std::lock_guard lock(mutex_);
    ++requests_;
  }
  arrived_.notify_all();
  const auto answer = answer_(path);
  --open_;
  if (!answer) {
    wait_readable(socket, stop);  // until the client leaves
    return;
  }
  send(socket, answer->data(), answer->size(), MSG_NOSIGNAL);
  if (answer->find("Connection: close") != std::string::npos) shutdown(socket, SHUT_RDWR);
}

std::string page(const std::string& status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace sightline::media
