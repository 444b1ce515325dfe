// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/mutex.h"

#include <stop_token>
#include <thread>

#include <gtest/gtest.h>

namespace sightline {
namespace {

using namespace std::chrono_literals;

constexpr int kRounds = 1'000;

struct Table {
  Mutex mutex;
  CondVar changed;
  int turn SL_GUARDED_BY(mutex) = 0;  // even: one player's turn, odd: the other's

  void play(int parity) {
    for (int i = 0; i < kRounds; ++i) {
      const MutexLock lock(mutex);
      changed.wait(mutex, [&]() SL_REQUIRES(mutex) { return turn % 2 == parity; });
      ++turn;
      changed.notify_one();
    }
  }
};

TEST(CondVar, WaitsReleaseTheMutexForTheOtherThread) {
  Table table;
  {
    const std::jthread other([&] { table.play(1); });
    table.play(0);
  }
  const MutexLock lock(table.mutex);
  EXPECT_EQ(table.turn, 2 * kRounds);
}

TEST(CondVar, WaitReturnsFalseAfterItsTime) {
  Table table;
  const MutexLock lock(table.mutex);
  const auto is_turned = [&]() SL_REQUIRES(table.mutex) { return table.turn > 0; };
  EXPECT_FALSE(table.changed.wait_for(table.mutex, 1ms, is_turned));
  table.turn = 1;
  EXPECT_TRUE(table.changed.wait_for(table.mutex, 0ms, is_turned));
}

TEST(CondVar, TheMutexIsFreeForOthersAfterAWait) {
  Table table;
  {
    const MutexLock lock(table.mutex);
    table.changed.wait_for(table.mutex, 1ms);
  }
  const std::jthread other([&] {
    const MutexLock lock(table.mutex);
    ++table.turn;
  });
}

TEST(StopCondVar, ARequestToStopEndsAWaitWithoutADeadline) {
  Mutex mutex;
  StopCondVar changed;
  std::stop_source stopping;
  const std::jthread other([&] { stopping.request_stop(); });
  const MutexLock lock(mutex);
  EXPECT_FALSE(
      changed.wait_until(mutex, stopping.get_token(), Instant::max(), [] { return false; }));
}

TEST(StopCondVar, ADeadlineThatHasComeEndsAWait) {
  Mutex mutex;
  StopCondVar changed;
  const MutexLock lock(mutex);
  EXPECT_FALSE(changed.wait_until(mutex, std::stop_source().get_token(), system_clock().now(),
                                  [] { return false; }));
}

}  // namespace
}  // namespace sightline
