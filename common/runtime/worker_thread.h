// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace sightline {

// A named thread. Its body gets a stop token and must return soon after a stop is requested. An
// exception that escapes the body ends the process with a message that names the thread; so does a
// system that starts no more threads, with status 1.
class WorkerThread {
 public:
  // The kernel keeps the first 15 bytes of the name.
  WorkerThread(const std::string& name, std::function<void(std::stop_token)> body);
  WorkerThread(WorkerThread&&) noexcept = default;
  WorkerThread& operator=(WorkerThread&&) noexcept = default;
  // Requests the stop and joins.
  ~WorkerThread() = default;

  void request_stop() { thread_.request_stop(); }
  // Waits for the body to return. Not from the thread itself; at most once has an effect.
  void join();

 private:
  std::jthread thread_;
};

}  // namespace sightline
