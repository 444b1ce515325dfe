// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/prefill_pace.h"

#include <limits>

#include <gtest/gtest.h>

namespace sightline::fleet {
namespace {

TEST(PrefillPace, NothingIsKnownBeforeAnAnswerThatComputedEnough) {
  PrefillPace pace;
  pace.learn(PrefillPace::kTokensMin - 1, 1);
  pace.learn(1'000, 0);
  pace.learn(1'000, -1);
  pace.learn(1'000, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(pace.seconds_per_token());
  pace.learn(1'000, 2);
  EXPECT_DOUBLE_EQ(*pace.seconds_per_token(), 0.002);
}

TEST(PrefillPace, TheFastestTenthOfTheLatestCounts) {
  PrefillPace pace;
  // Most wait in the queue. One is too fast to be true.
  for (int i = 0; i < 100; ++i) pace.learn(1'000, i < 20 ? 1.0 : 5.0);
  pace.learn(1'000, 0.001);
  EXPECT_DOUBLE_EQ(*pace.seconds_per_token(), 0.001);
}

TEST(PrefillPace, WhatWasLearntLongAgoIsForgotten) {
  PrefillPace pace;
  for (int i = 0; i < 100; ++i) pace.learn(1'000, 1);
  for (std::size_t i = 0; i < PrefillPace::kSamples; ++i) pace.learn(1'000, 3);
  EXPECT_DOUBLE_EQ(*pace.seconds_per_token(), 0.003);
}

TEST(PrefillPace, CountsEarlierReuseWithTheFirstKnownPace) {
  PrefillPace pace;
  EXPECT_EQ(pace.saved(1'000), 0);
  EXPECT_EQ(pace.saved(500), 0);
  pace.learn(1'000, 1);
  EXPECT_DOUBLE_EQ(pace.saved(500), 2.0);
  EXPECT_DOUBLE_EQ(pace.saved(500), 0.5);
}

}  // namespace
}  // namespace sightline::fleet
