// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/freed_aside.h"

#include <atomic>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "tests/fakes/run_task.h"

namespace sightline {
namespace {

using fakes::eventually;
using fakes::run_task;

// Notes which thread destroys it.
class Noted {
 public:
  explicit Noted(std::atomic<std::thread::id>& by) : by_(&by) {}
  Noted(Noted&& other) noexcept : by_(std::exchange(other.by_, nullptr)) {}
  Noted& operator=(Noted&&) = delete;
  ~Noted() {
    if (by_ != nullptr) *by_ = std::this_thread::get_id();
  }

 private:
  std::atomic<std::thread::id>* by_;
};

// The thread that owned a value, and the one that destroyed it.
struct Threads {
  std::thread::id owner;
  std::atomic<std::thread::id> destroyer{};
};

void own(IoPool& pool, std::size_t bytes, Threads& threads) {
  run_task(
      pool,
      [&]() -> Task<void> {
        threads.owner = std::this_thread::get_id();
        Noted value(threads.destroyer);
        const FreedAside aside(pool, value, bytes);
        co_return;
      },
      0);
}

bool is_destroyed(const Threads& threads) {
  return eventually([&] { return threads.destroyer.load() != std::thread::id(); });
}

TEST(FreedAside, ALargeValueIsDestroyedOnAnotherThread) {
  IoPool pool({.io_threads = 1, .compute_threads = 1});
  Threads threads;
  own(pool, kLargeBytes, threads);
  ASSERT_TRUE(is_destroyed(threads));
  EXPECT_NE(threads.destroyer.load(), threads.owner);
  EXPECT_TRUE(eventually([&] { return pool.freeing() == 0; }));
}

TEST(FreedAside, ASmallValueIsDestroyedInPlace) {
  IoPool pool({.io_threads = 1, .compute_threads = 1});
  Threads threads;
  own(pool, kLargeBytes - 1, threads);
  EXPECT_EQ(threads.destroyer.load(), threads.owner);
}

TEST(FreedAside, NoMoreThanItsBoundWaitsToBeFreed) {
  IoPool pool({.io_threads = 1, .compute_threads = 1});
  pool.freeing() = kFreedAsideBytesMax;
  Threads threads;
  own(pool, kLargeBytes, threads);
  EXPECT_EQ(threads.destroyer.load(), threads.owner);
  EXPECT_EQ(pool.freeing(), kFreedAsideBytesMax);
}

TEST(FreedAside, FreesOneOversizedValueAsideIfNoOtherWaits) {
  IoPool pool({.io_threads = 1, .compute_threads = 1});
  Threads threads;
  own(pool, 2 * kFreedAsideBytesMax, threads);
  ASSERT_TRUE(is_destroyed(threads));
  EXPECT_NE(threads.destroyer.load(), threads.owner);
}

TEST(FreedAside, APoolThatStopsFreesInPlace) {
  IoPool pool({.io_threads = 1, .compute_threads = 1});
  pool.stop();
  Threads threads;
  {
    Noted value(threads.destroyer);
    const FreedAside aside(pool, value, kLargeBytes);
  }
  EXPECT_EQ(threads.destroyer.load(), std::this_thread::get_id());
}

}  // namespace
}  // namespace sightline
