// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/worker_thread.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <pthread.h>

namespace sightline {
namespace {

TEST(WorkerThread, CarriesItsNameShortenedToWhatTheKernelKeeps) {
  std::array<char, 32> name{};
  WorkerThread thread("sl-a-very-long-thread-name", [&](const std::stop_token&) {
    pthread_getname_np(pthread_self(), name.data(), name.size());
  });
  thread.join();
  EXPECT_EQ(std::string(name.data()), "sl-a-very-long-");
}

TEST(WorkerThread, DestructorRequestsAStopAndJoins) {
  std::atomic<bool> ended = false;
  {
    const WorkerThread thread("sl-test", [&](std::stop_token stop) {
      std::mutex mutex;
      std::condition_variable_any never;
      std::unique_lock lock(mutex);
      never.wait(lock, std::move(stop), [] { return false; });
      ended = true;
    });
  }
  EXPECT_TRUE(ended);
}

TEST(WorkerThreadDeathTest, EndsTheProcessNamingTheThreadWhenAnExceptionEscapes) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto leak = [] {
    WorkerThread thread("sl-leaky",
                        [](const std::stop_token&) { throw std::runtime_error("spilled"); });
    thread.join();
  };
  EXPECT_DEATH(leak(), "thread sl-leaky: exception escaped: spilled");
}

TEST(WorkerThread, CountsAStepWithoutMemoryByThreadName) {
  int done = 0;
  WorkerThread thread("sl-hungry", [&](const std::stop_token&) {
    EXPECT_FALSE(run_step([] { throw std::bad_alloc(); }));
    EXPECT_TRUE(run_step([&] { ++done; }));
    EXPECT_FALSE(run_step([] { throw std::bad_alloc(); }));
  });
  thread.join();
  EXPECT_EQ(done, 1);
  std::uint64_t failed = 0;
  for (const FailedSteps& steps : failed_steps()) {
    if (steps.thread == "sl-hungry") failed += steps.count;
  }
  EXPECT_EQ(failed, 2U);
}

TEST(WorkerThread, AStepPassesAnyOtherException) {
  EXPECT_THROW(run_step([] { throw std::runtime_error("spilled"); }), std::runtime_error);
}

}  // namespace
}  // namespace sightline
