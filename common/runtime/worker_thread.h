// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <functional>
#include <new>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace sightline {

// A named thread. Its body gets a stop token and must return soon after a stop request. An
// exception that escapes the body ends the process with a message that names the thread. If the
// system cannot start the thread, the process ends with status 1.
class WorkerThread {
 public:
  // The kernel keeps the first 15 bytes of the name.
  WorkerThread(const std::string& name, std::function<void(std::stop_token)> body);
  WorkerThread(WorkerThread&&) noexcept = default;
  WorkerThread& operator=(WorkerThread&&) noexcept = default;
  // Requests the stop and joins.
  ~WorkerThread() = default;

  void request_stop() { thread_.request_stop(); }
  // Waits for the body to return. Not from the thread itself. A second call has no effect.
  void join();

 private:
  std::jthread thread_;
};

// The steps of a thread that failed because the system gave no memory.
struct FailedSteps {
  std::string thread;
  std::uint64_t count = 0;
};
// Of all threads that had failures. From any thread.
std::vector<FailedSteps> failed_steps();

// Counts a failed step of this thread. Logs it, at most once in ten seconds for all threads. Then
// pauses for 20 ms, so a loop whose step always fails leaves the processor to others. Works without
// memory of the heap.
void note_failed_step() noexcept;

// Runs one step of a thread's loop. Returns false if the system gave no memory for it
// (std::bad_alloc). Only the step ends then, see note_failed_step(). The caller makes sure that the
// work of a failed step counts as not done. Passes any other exception on.
template <class Step>
bool run_step(const Step& step) {
  try {
    step();
    return true;
  } catch (const std::bad_alloc&) {
    note_failed_step();
  }
  return false;
}

}  // namespace sightline
