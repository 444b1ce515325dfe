// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <chrono>
#include <future>
#include <thread>

#include "common/base/check.h"
#include "common/runtime/io_pool.h"

namespace sightline::fakes {

// Longest wait for something that a test expects to happen: long enough for a loaded machine under
// sanitizers, since a passing test never waits it out.
inline constexpr std::chrono::seconds kPatience{60};

template <class Body>
Task<void> run_then_tell(Body& body, std::promise<void>& done) {
  co_await body();
  done.set_value();
}

// Runs a coroutine (a lambda returning Task<void>) on an I/O thread and waits for its end.
template <class Body>
void run_task(IoPool& pool, Body body, std::size_t thread = 0) {
  std::promise<void> done;
  spawn(pool.context(thread).get_executor(), run_then_tell(body, done));
  SL_CHECK(done.get_future().wait_for(kPatience) == std::future_status::ready);
}

// Waits for a condition that other threads bring about. True if it came in time.
template <class Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace sightline::fakes
