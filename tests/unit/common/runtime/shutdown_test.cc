// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/runtime/shutdown.h"

#include <csignal>
#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace sightline {
namespace {

TEST(Shutdown, RunsItsStepsInReverseOrderAfterStopsWereRequested) {
  Shutdown shutdown;
  std::vector<std::string> order;
  const auto token = shutdown.token();
  shutdown.on_stop("first", [&] { order.emplace_back("first"); });
  shutdown.on_stop("second", [&] {
    EXPECT_TRUE(token.stop_requested());
    order.emplace_back("second");
  });
  EXPECT_FALSE(token.stop_requested());
  shutdown.request();
  shutdown.wait();
  EXPECT_EQ(order, (std::vector<std::string>{"second", "first"}));
}

class ShutdownBySignal : public testing::TestWithParam<int> {};

TEST_P(ShutdownBySignal, EndsTheWait) {
  Shutdown shutdown;
  bool stopped = false;
  shutdown.on_stop("flag", [&] { stopped = true; });
  kill(getpid(), GetParam());
  shutdown.wait();
  EXPECT_TRUE(stopped);
}

INSTANTIATE_TEST_SUITE_P(All, ShutdownBySignal, testing::Values(SIGINT, SIGTERM, SIGHUP));

TEST(Shutdown, HangupRunsItsActionAndTheProcessContinues) {
  // The process that started the tests may ignore it, as nohup does.
  std::signal(SIGHUP, SIG_DFL);
  Shutdown shutdown;
  std::promise<void> called;
  kill(getpid(), SIGHUP);  // early: the signal waits for on_hangup()
  shutdown.on_hangup([&] { called.set_value(); });
  called.get_future().wait();
  EXPECT_FALSE(shutdown.token().stop_requested());
  shutdown.request();
  shutdown.wait();
}

TEST(ShutdownDeathTest, DoesNothingOnAHangupWhileItStops) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto stop = [] {
    Shutdown shutdown;
    shutdown.on_hangup([] { _exit(1); });
    shutdown.on_stop("hangup", [] {
      kill(getpid(), SIGHUP);
      // Received after SIGHUP, so it is read later.
      kill(getpid(), SIGINT);
      for (;;) pause();
    });
    kill(getpid(), SIGTERM);
    shutdown.wait();
  };
  EXPECT_EXIT(stop(), testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(ShutdownDeathTest, DoesNothingOnAHangupThatWasIgnoredAtTheStart) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto stop = [] {
    std::signal(SIGHUP, SIG_IGN);
    Shutdown shutdown;
    shutdown.on_hangup([] { _exit(1); });
    shutdown.on_stop("end", [] { _exit(0); });
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGTERM);
    shutdown.wait();
  };
  EXPECT_EXIT(stop(), testing::ExitedWithCode(0), "");
}

TEST(ShutdownDeathTest, ExitsAtOnceOnASecondSignalWhileAStepHangs) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto hang = [] {
    Shutdown shutdown;
    shutdown.on_stop("hang", [] {
      kill(getpid(), SIGTERM);
      for (;;) pause();
    });
    kill(getpid(), SIGINT);
    shutdown.wait();
  };
  EXPECT_EXIT(hang(), testing::ExitedWithCode(128 + SIGTERM), "");
}

}  // namespace
}  // namespace sightline
