// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <gtest/gtest.h>

#include "operator/kube/pace/backoff.h"
#include "operator/kube/pace/token_bucket.h"

namespace sightline::pace {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Instant kStart{std::chrono::hours(1)};

TEST(TokenBucket, ABurstPassesAndTheRestWaitsItsTurn) {
  TokenBucket bucket(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.take(kStart), Duration::zero());
  EXPECT_EQ(bucket.take(kStart), milliseconds(100));
  EXPECT_EQ(bucket.take(kStart), milliseconds(200));
}

TEST(TokenBucket, WhatGrowsBackIsNoMoreThanABurst) {
  TokenBucket bucket(10, 2);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(bucket.take(kStart), Duration::zero());
  const Instant later = kStart + minutes(5);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(bucket.take(later), Duration::zero());
  EXPECT_EQ(bucket.take(later), milliseconds(100));
  EXPECT_EQ(bucket.take(later + milliseconds(200)), Duration::zero());
}

TEST(Backoff, WaitsDoubleUpToTheirBound) {
  Rng rng(1);
  Backoff backoff({.first = milliseconds(800), .max = seconds(30)});
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 8; ++i) {
    waits.push_back(std::chrono::duration_cast<milliseconds>(backoff.next(kStart, rng)).count());
  }
  EXPECT_EQ(waits, (std::vector<std::int64_t>{800, 1600, 3200, 6400, 12800, 25600, 30000, 30000}));
}

TEST(Backoff, JitterOnlyMakesWaitsLonger) {
  Rng rng(1);
  Backoff backoff({.first = seconds(30), .max = seconds(30), .jitter = 1});
  Duration least = minutes(10);
  Duration most{};
  for (int i = 0; i < 1000; ++i) {
    const Duration wait = backoff.next(kStart, rng);
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_GE(least, seconds(30));
  EXPECT_LT(most, seconds(60));
  EXPECT_GT(most - least, seconds(25));
}

TEST(Backoff, QuietTimeResetsTheWait) {
  Rng rng(1);
  Backoff backoff({.first = seconds(1), .max = seconds(30), .reset_after = minutes(2)});
  for (int i = 0; i < 6; ++i) static_cast<void>(backoff.next(kStart, rng));
  EXPECT_EQ(backoff.next(kStart + minutes(2), rng), seconds(30));
  EXPECT_EQ(backoff.next(kStart + minutes(4) + seconds(1), rng), seconds(1));
}

}  // namespace
}  // namespace sightline::pace
