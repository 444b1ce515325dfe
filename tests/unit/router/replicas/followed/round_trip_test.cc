// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/replicas/followed/round_trip.h"

#include <deque>
#include <optional>

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::followed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RoundTripTest : public ::testing::Test {
 protected:
  // Each message comes back after `delay`. Nothing: never.
  void pass(Duration time, std::optional<Duration> delay) {
    for (const Instant end = now + time; now < end; now += milliseconds(10)) {
      const auto number = trip.turn(now);
      if (number && delay) under_way.emplace_back(now + *delay, *number);
      while (!under_way.empty() && under_way.front().first <= now) {
        trip.heard(under_way.front().second, now);
        under_way.pop_front();
      }
    }
  }
  [[nodiscard]] Duration age() const { return now - trip.fresh_at(); }

  Instant now = Instant{} + seconds(1'000);
  Rng rng{1};
  RoundTrip trip{seconds(1), [this] { return rng.next(); }, now};
  std::deque<std::pair<Instant, std::uint64_t>> under_way;
};

TEST_F(RoundTripTest, WhatComesBackSoonIsFresh) {
  pass(seconds(60), milliseconds(20));
  EXPECT_LE(age(), seconds(1) + milliseconds(20));
  EXPECT_EQ(trip.taken(now), milliseconds(20));
}

TEST_F(RoundTripTest, SeesAConstantDelayOfSteadyMessages) {
  pass(seconds(60), seconds(8));
  EXPECT_GE(age(), seconds(8));
  EXPECT_LE(age(), seconds(9) + milliseconds(20));
  EXPECT_GE(trip.taken(now), seconds(8));
  under_way.clear();
  pass(seconds(10), milliseconds(20));
  EXPECT_LE(age(), seconds(1) + milliseconds(20));
  EXPECT_EQ(trip.taken(now), milliseconds(20));
}

TEST_F(RoundTripTest, AgeGrowsWithoutReturnsButMemoryDoesNot) {
  pass(seconds(1'000), std::nullopt);
  EXPECT_EQ(age(), seconds(1'000));
  EXPECT_GE(trip.taken(now), RoundTrip::kOpenMax * seconds(1) - seconds(1));
}

TEST_F(RoundTripTest, WhatIsRepeatedOrWasNeverSentChangesNothing) {
  const auto first = trip.turn(now);
  ASSERT_TRUE(first);
  trip.heard(*first, now + milliseconds(5));
  const Instant fresh_at = trip.fresh_at();
  now += seconds(8);
  trip.turn(now);
  trip.heard(*first, now);
  trip.heard(*first + 1, now);
  EXPECT_EQ(trip.fresh_at(), fresh_at);
}

TEST_F(RoundTripTest, OneIsSentEachSecondHoweverOftenItIsAsked) {
  int sent = 0;
  for (const Instant end = now + seconds(10); now < end; now += milliseconds(1)) {
    sent += trip.turn(now) ? 1 : 0;
  }
  EXPECT_EQ(sent, 10);
}

}  // namespace
}  // namespace sightline::followed
