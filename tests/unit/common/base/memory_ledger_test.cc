// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/memory_ledger.h"

#include <limits>

#include <gtest/gtest.h>

namespace sightline {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

MemoryBounds unbounded() {
  MemoryBounds bounds;
  bounds.fill(std::numeric_limits<std::size_t>::max());
  return bounds;
}

TEST(MemoryLedger, SharesTogetherHaveNoMoreThanTheWhole) {
  MemoryLedger ledger(64 * kMiB, unbounded());
  std::size_t media = 0;
  ASSERT_TRUE(ledger.share(MemoryShare::Media).add(media, 50 * kMiB));
  std::size_t index = 0;
  EXPECT_FALSE(ledger.share(MemoryShare::Index).add(index, 7 * kMiB));
  EXPECT_TRUE(ledger.share(MemoryShare::Index).add(index, 6 * kMiB));
  EXPECT_EQ(ledger.whole().held(), 56 * kMiB) << "an eighth is kept for small requests";
}

TEST(MemoryLedger, LargeRequestsLeaveRoomForSmallOnes) {
  MemoryLedger ledger(64 * kMiB, fitting_bounds(64 * kMiB, unbounded()));
  ByteBudget& requests = ledger.share(MemoryShare::Requests);
  std::size_t large = 0;
  while (requests.add(large, kMiB, claim_of(2 * kMiB))) {
  }
  std::size_t small = 0;
  EXPECT_TRUE(requests.add(small, kMiB, claim_of(kMiB)));
}

TEST(MemoryLedger, ErrorNamesTheFullLimitAndWhetherToRetry) {
  MemoryBounds bounds = unbounded();
  bounds[static_cast<std::size_t>(MemoryShare::Media)] = 10 * kMiB;
  MemoryLedger ledger(64 * kMiB, bounds);
  ByteBudget& media = ledger.share(MemoryShare::Media);
  std::size_t held = 0;
  ASSERT_TRUE(media.add(held, 8 * kMiB));

  const Error full = memory_error(media, 3 * kMiB, Claim::Ordinary, "a picture");
  EXPECT_EQ(full.code, ErrorCode::Overloaded);
  EXPECT_TRUE(full.retryable);
  EXPECT_EQ(full.limit, "media-held-bytes-max");

  const Error never = memory_error(media, 11 * kMiB, Claim::Ordinary, "a picture");
  EXPECT_EQ(never.code, ErrorCode::TooLarge);
  EXPECT_EQ(never.blame, Blame::Client);
  EXPECT_EQ(never.limit, "media-held-bytes-max");

  std::size_t others = 0;
  ASSERT_TRUE(ledger.share(MemoryShare::Index).add(others, 47 * kMiB));
  const Error crowded = memory_error(media, 2 * kMiB, Claim::Ordinary, "a picture");
  EXPECT_EQ(crowded.code, ErrorCode::Overloaded);
  EXPECT_EQ(crowded.limit, "memory-bytes-max") << "the share has room";
}

TEST(MemoryLedger, FittingCutsLimitsToTheirPartOnly) {
  MemoryBounds wanted = unbounded();
  wanted[static_cast<std::size_t>(MemoryShare::Events)] = kMiB;
  const MemoryBounds fitting = fitting_bounds(64 * kMiB, wanted);
  EXPECT_EQ(fitting[static_cast<std::size_t>(MemoryShare::Events)], kMiB);
  for (const std::size_t bound : fitting) EXPECT_LT(bound, 64 * kMiB);
}

}  // namespace
}  // namespace sightline
