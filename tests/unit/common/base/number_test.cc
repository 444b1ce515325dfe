// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "common/base/number.h"

#include <gtest/gtest.h>

namespace sightline {
namespace {

TEST(WholeNumber, IsWhatDecimalDigitsSpell) {
  EXPECT_EQ(whole_number("0"), 0U);
  EXPECT_EQ(whole_number("65535", 65535), 65535U);
  EXPECT_EQ(whole_number("4294967295"), 4294967295U);
  EXPECT_EQ(whole_number<std::uint64_t>("18446744073709551615"), 18446744073709551615ULL);
}

TEST(WholeNumber, IsNothingElse) {
  for (const std::string_view text : {"", " 1", "1 ", "+1", "-1", "1.0", "0x1", "1e3", "a"}) {
    EXPECT_EQ(whole_number(text), std::nullopt) << text;
  }
}

TEST(WholeNumber, StopsAtItsLimit) {
  EXPECT_EQ(whole_number("65536", 65535), std::nullopt);
  EXPECT_EQ(whole_number("4294967296"), std::nullopt);
  EXPECT_EQ(whole_number<std::uint16_t>("65536"), std::nullopt);
}

}  // namespace
}  // namespace sightline
