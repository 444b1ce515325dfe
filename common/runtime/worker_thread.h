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

// Steps of a thread that ended because the system gave no memory.
struct FailedSteps {
  std::string thread;
  std::uint64_t count = 0;
};
// Of all threads that had any. From any thread.
std::vector<FailedSteps> failed_steps();

// Counts one of this thread, says so in the log, once in ten seconds at most, and pauses for 20 ms:
// a loop whose step fails again and again leaves others the processor. Takes no memory that it
// needs.
void note_failed_step() noexcept;

// Runs a step of a thread's loop. False: the system gave no memory for it (std::bad_alloc), which
// ends the step and nothing else: note_failed_step(). The caller sees to it that what the step had
// begun is known to be undone. Any other exception passes.
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
