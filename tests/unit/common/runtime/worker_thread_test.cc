// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/worker_thread.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
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

TEST(WorkerThread, IsToldToStopAndJoinedWhenItIsDestroyed) {
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

}  // namespace
}  // namespace sightline
