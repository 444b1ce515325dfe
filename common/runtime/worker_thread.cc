// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/worker_thread.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/line_writer.h"
#include "common/base/log.h"
#include "common/base/mutex.h"

namespace sightline {
namespace {

constexpr std::size_t kKernelNameBytes = 15;
constexpr std::size_t kCountedThreadsMax = 64;  // by name. Further threads share the last row
constexpr int kPauseMs = 20;
// A full log must not add to the lack of memory.
constexpr std::chrono::seconds kComplaintInterval{10};

// Fixed arrays, because counting a failed allocation must not allocate.
struct Counted {
  std::array<char, kKernelNameBytes + 1> name{};
  std::uint64_t count = 0;
};
struct Failures {
  Mutex mutex;
  std::array<Counted, kCountedThreadsMax> threads SL_GUARDED_BY(mutex);
  Instant next_complaint SL_GUARDED_BY(mutex){};
};
Failures failures;

// Returns true if the log should report it.
bool count_failure() {
  std::array<char, kKernelNameBytes + 1> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  const Instant now = system_clock().now();
  const MutexLock lock(failures.mutex);
  auto counted =
      std::find_if(failures.threads.begin(), failures.threads.end() - 1,
                   [&](const Counted& one) { return one.count == 0 || one.name == name; });
  counted->name = name;
  ++counted->count;
  if (now < failures.next_complaint) return false;
  failures.next_complaint = now + kComplaintInterval;
  return true;
}

void run_named(const std::string& name, const std::function<void(std::stop_token)>& body,
               std::stop_token stop) noexcept {
  // A longer name would make the call fail.
  pthread_setname_np(pthread_self(), name.substr(0, kKernelNameBytes).c_str());
  try {
    body(std::move(stop));
  } catch (const std::exception& escaped) {
    die("thread " + name + ": exception escaped: " + escaped.what());
  } catch (...) {
    die("thread " + name + ": exception escaped");
  }
}

std::jthread started(const std::string& name, std::function<void(std::stop_token)> body) {
  try {
    return std::jthread([name, body = std::move(body)](std::stop_token stop) noexcept {
      run_named(name, body, std::move(stop));
    });
  } catch (const std::system_error& error) {
    // The lines before explain what the process was doing.
    flush_log();
    end_without_thread(STDERR_FILENO, name, error.what());
  }
}

}  // namespace

WorkerThread::WorkerThread(const std::string& name, std::function<void(std::stop_token)> body)
    : thread_(started(name, std::move(body))) {}

std::vector<FailedSteps> failed_steps() {
  std::vector<FailedSteps> all;
  const MutexLock lock(failures.mutex);
  for (const Counted& one : failures.threads) {
    if (one.count > 0) all.push_back({.thread = one.name.data(), .count = one.count});
  }
  return all;
}

void note_failed_step() noexcept {
  if (count_failure()) {
    try {
      std::array<char, kKernelNameBytes + 1> name{};
      pthread_getname_np(pthread_self(), name.data(), name.size());
      log(LogLevel::Error, "skipped a step of a thread: the system has no memory",
          {{"thread", std::string_view(name.data())}});
    } catch (const std::bad_alloc&) {
      // The failure is counted, which needs no memory.
    }
  }
  // poll() sleeps without memory.
  ::poll(nullptr, 0, kPauseMs);
}

void WorkerThread::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace sightline
