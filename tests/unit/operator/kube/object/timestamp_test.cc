// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/object/timestamp.h"

#include <gtest/gtest.h>

#include "common/base/rng.h"

namespace sightline::object {
namespace {

TEST(Timestamp, ReadsBackWhatItWrites) {
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    const WallTime time(std::chrono::microseconds(rng.next() % 9'000'000'000'000'000ULL));
    EXPECT_EQ(parse_timestamp(to_micro_timestamp(time)), time);
    EXPECT_EQ(parse_timestamp(to_timestamp(time)), std::chrono::floor<std::chrono::seconds>(time));
  }
}

TEST(Timestamp, FormsAreThoseOfKubernetes) {
  const WallTime time =
      WallTime(std::chrono::seconds(1'795'579'506)) + std::chrono::microseconds(7);
  EXPECT_EQ(to_timestamp(time), "2026-11-25T04:05:06Z");
  EXPECT_EQ(to_micro_timestamp(time), "2026-11-25T04:05:06.000007Z");
  EXPECT_EQ(parse_timestamp("2026-11-25T06:05:06.000007+02:00"), time);
  EXPECT_EQ(parse_timestamp("2026-11-25T03:05:06.000007000-01:00"), time);
}

TEST(Timestamp, OtherTextsAreNone) {
  for (const char* text :
       {"", "2026", "2026-11-25", "2026-11-25T04:05:06", "2026-02-30T04:05:06Z",
        "2026-11-25 04:05:06Z", "2026-11-25T24:05:06Z", "2026-11-25T04:05:06.Z",
        "2026-11-25T04:05:06.1234567890Z", "1969-11-25T04:05:06Z", "9999-11-25T04:05:06Z",
        "2026-11-25T04:05:06Zx", "2026-11-25T04:05:06+2:00", "-026-11-25T04:05:06Z"}) {
    EXPECT_EQ(parse_timestamp(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sightline::object
