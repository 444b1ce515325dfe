// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/http/pace.h"

#include <gtest/gtest.h>

namespace sightline::http {
namespace {

using std::chrono::seconds;

constexpr Pace::Limits kLimits{
    .stall = seconds(10), .total_max = seconds(100), .bytes_per_s_min = 1000, .grace = seconds(20)};

TEST(Pace, BoundsASingleWait) { EXPECT_EQ(Pace(kLimits).patience(), seconds(10)); }

TEST(Pace, EndsOneThatTricklesHoweverOftenItSendsAByte) {
  Pace pace(kLimits);
  int waits = 0;
  for (; pace.patience() > Duration::zero() && waits < 1000; ++waits) pace.add(seconds(1), 1);
  EXPECT_EQ(waits, 21);  // the grace, and the time that 20 bytes earn
}

TEST(Pace, WaitsForASteadyPeerUntilTheTotalTime) {
  Pace pace(kLimits);
  for (int i = 0; i < 99; ++i) pace.add(seconds(1), 1000);
  EXPECT_EQ(pace.patience(), seconds(1));
  pace.add(seconds(1), 1'000'000);
  EXPECT_EQ(pace.patience(), Duration::zero());
}

TEST(Pace, ABurstEarnsNoMoreThanTheGrace) {
  Pace pace(kLimits);
  pace.add(seconds(0), std::size_t{1} << 60);
  pace.add(seconds(15), 0);
  EXPECT_EQ(pace.patience(), seconds(5));
  pace.add(seconds(15), 0);
  EXPECT_EQ(pace.patience(), Duration::zero());
}

TEST(Pace, ATimeWithoutWaitingCostsNothing) {
  Pace pace(kLimits);
  for (int i = 0; i < 1000; ++i) pace.add(seconds(0), 1);
  EXPECT_EQ(pace.patience(), seconds(10));
}

TEST(Pace, WithoutARateOnlyTheStallCounts) {
  Pace pace({.stall = seconds(10)});
  pace.add(seconds(1'000'000), 0);
  EXPECT_EQ(pace.patience(), seconds(10));
}

}  // namespace
}  // namespace sightline::http
