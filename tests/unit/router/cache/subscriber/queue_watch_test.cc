// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/cache/subscriber/queue_watch.h"

#include <limits>

#include <gtest/gtest.h>

namespace sightline::subscriber {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using Lag = QueueWatch::Lag;

// Two clocks that differ by an hour.
constexpr Lag kLeast = 3600s;

Instant at(std::chrono::milliseconds time) { return Instant(time); }

TEST(QueueWatch, OneLookThatFindsNothingProvesNothing) {
  QueueWatch watch;
  watch.found_empty(at(1000ms));
  EXPECT_EQ(watch.empty_at(), std::nullopt);
  watch.found_empty(at(1099ms));
  EXPECT_EQ(watch.empty_at(), std::nullopt);
  watch.found_empty(at(1100ms));
  EXPECT_EQ(watch.empty_at(), at(1100ms));
}

TEST(QueueWatch, DelayedMessageBetweenLooksVoidsTheFirst) {
  QueueWatch watch;
  watch.read(at(0ms), kLeast);
  watch.found_empty(at(1000ms));
  ASSERT_EQ(watch.empty_at(), at(0ms)) << "it did not wait";
  watch.read(at(2000ms), kLeast + 800ms);
  watch.found_empty(at(2001ms));
  EXPECT_EQ(watch.empty_at(), at(0ms));
  watch.found_empty(at(2101ms));
  EXPECT_EQ(watch.empty_at(), at(2101ms));
}

TEST(QueueWatch, PromptMessagesProveABusyEngineCaughtUp) {
  QueueWatch watch;
  for (auto time = 0ms; time < 10s; time += 20ms) {
    watch.read(at(time), kLeast + (time == 100ms ? Lag(0) : Lag(30ms)));
    watch.found_empty(at(time + 1ms));
    EXPECT_EQ(watch.empty_at(), at(time)) << "what it may have announced since is not vouched for";
  }
}

TEST(QueueWatch, DelayedMessagesDoNotProveABusyEngine) {
  QueueWatch watch;
  watch.read(at(0ms), kLeast);
  watch.found_empty(at(1ms));
  for (auto time = 20ms; time < 10s; time += 20ms) {
    watch.read(at(time), kLeast + 775ms);
    watch.found_empty(at(time + 1ms));
    EXPECT_EQ(watch.empty_at(), at(0ms));
  }
}

TEST(QueueWatch, ClockSetBackRecoversAfterAWhile) {
  QueueWatch watch;
  watch.read(at(0ms), kLeast);
  Instant last{};
  for (auto time = 1000ms; time < 600s; time += 1000ms) {
    watch.read(at(time), kLeast + 10s);
    watch.found_empty(at(time));
    last = watch.empty_at().value_or(Instant{});
    EXPECT_TRUE(time <= 121s || last == at(time));
  }
}

TEST(QueueWatch, TimesThatMakeNoSenseVouchForNothing) {
  QueueWatch watch;
  for (const double lag :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1.0}) {
    watch.read(at(1000ms), Lag(lag));
    watch.found_empty(at(1001ms));
    EXPECT_EQ(watch.empty_at(), std::nullopt) << lag;
  }
  watch.found_empty(at(1200ms));
  EXPECT_EQ(watch.empty_at(), at(1200ms)) << "a pause does";
}

TEST(QueueWatch, ALostConnectionVoidsWhatWasSeen) {
  QueueWatch watch;
  watch.read(at(0ms), kLeast);
  watch.found_empty(at(1000ms));
  watch.reset();
  EXPECT_EQ(watch.empty_at(), std::nullopt);
  watch.found_empty(at(1050ms));
  EXPECT_EQ(watch.empty_at(), std::nullopt);
}

}  // namespace
}  // namespace sightline::subscriber
