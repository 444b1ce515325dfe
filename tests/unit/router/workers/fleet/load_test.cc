// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/load.h"

#include <utility>

#include <gtest/gtest.h>

namespace sightline::fleet {
namespace {

using std::chrono_literals::operator""s;

constexpr Instant kStart{1'000s};
constexpr Booking kBooking{.prefill_tokens = 160, .blocks = 12, .block_size = 16};

TEST(Load, APrefillWeighsUntilTheFirstTokenAndDecodingAfterIt) {
  const auto cell = std::make_shared<LoadCell>();
  Reservation reservation = cell->reserve(kBooking, kStart);
  EXPECT_EQ(cell->read(kStart).in_flight, 1U);
  EXPECT_EQ(cell->read(kStart).prefill_tokens, 160U);
  EXPECT_EQ(cell->read(kStart).blocks, 0U);
  reservation.first_token();
  reservation.first_token();
  EXPECT_EQ(cell->read(kStart).prefill_tokens, 0U);
  EXPECT_EQ(cell->read(kStart).blocks, 12U);
  reservation.release();
  reservation.release();
  EXPECT_EQ(cell->read(kStart).in_flight, 0U);
  EXPECT_EQ(cell->read(kStart).blocks, 0U);
}

TEST(Load, WithoutAFirstTokenThePrefillWeighsToTheEnd) {
  const auto cell = std::make_shared<LoadCell>();
  {
    const Reservation reservation = cell->reserve(kBooking, kStart);
    EXPECT_EQ(cell->read(kStart).prefill_tokens, 160U);
  }
  EXPECT_EQ(cell->read(kStart).prefill_tokens, 0U);
  EXPECT_EQ(cell->read(kStart).blocks, 0U);
}

TEST(Load, EveryWayOutReleasesExactlyOnce) {
  const auto cell = std::make_shared<LoadCell>();
  {
    Reservation first = cell->reserve(kBooking, kStart);
    Reservation second = std::move(first);
    Reservation third = cell->reserve(kBooking, kStart);
    third = std::move(second);
    EXPECT_EQ(cell->read(kStart).in_flight, 1U);
  }
  EXPECT_EQ(cell->read(kStart).in_flight, 0U);
  EXPECT_EQ(cell->read(kStart).prefill_tokens, 0U);
}

TEST(Load, RecentWorkHalvesWithTime) {
  const auto cell = std::make_shared<LoadCell>();
  static_cast<void>(cell->reserve(kBooking, kStart));
  EXPECT_DOUBLE_EQ(cell->read(kStart).recent_prefill_blocks, 10);
  EXPECT_NEAR(cell->read(kStart + kRecentHalfLife).recent_prefill_blocks, 5, 1e-9);
  static_cast<void>(cell->reserve(kBooking, kStart + kRecentHalfLife));
  EXPECT_NEAR(cell->read(kStart + 2 * kRecentHalfLife).recent_prefill_blocks, 7.5, 1e-9);
}

}  // namespace
}  // namespace sightline::fleet
