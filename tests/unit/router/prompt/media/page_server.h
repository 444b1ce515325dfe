// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace sightline::media {

// A web server on a loopback port. The path chooses the raw bytes of an answer. A path without an
// answer gets no answer. Connections stay open unless the answer contains "Connection: close".
class PageServer {
 public:
  // Returns the bytes of the answer for a path, or nothing to leave the request open.
  using Answer = std::function<std::optional<std::string>(const std::string& path)>;

  explicit PageServer(Answer answer);
  ~PageServer();

  [[nodiscard]] std::string url(const std::string& path,
                                const std::string& host = "127.0.0.1") const;
  [[nodiscard]] int connections() const { return connections_; }
  // Waits until this number of requests has arrived.
  void wait_for_requests(int count);
  // The highest number of requests that were open at the same time.
  [[nodiscard]] int open_max() const { return open_max_; }

 private:
  void accept_all(const std::stop_token& stop);
  void serve(int socket, const std::stop_token& stop);
  void answer_one(int socket, const std::string& path, const std::stop_token& stop);

  const Answer answer_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int> open_ = 0;
  std::atomic<int> open_max_ = 0;
  std::mutex mutex_;  // guards requests_ and threads_
  std::condition_variable arrived_;
  int requests_ = 0;
  std::vector<std::jthread> threads_;
  std::jthread acceptor_;
};

// Returns an HTTP/1.1 answer with a length.
std::string page(const std::string& status, const std::string& headers, const std::string& body);

}  // namespace sightline::media
