// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/retry/lost_bodies.h"

#include <string>

#include <gtest/gtest.h>

namespace sightline::retry {
namespace {

using std::chrono::seconds;

constexpr Instant kStart{std::chrono::hours(1)};

SentText chat(std::string_view body) { return {"POST", "/v1/chat/completions", body}; }

class LostBodiesTest : public testing::Test {
 protected:
  // An attempt of one second that is lost then.
  std::uint32_t lose(const SentText& text, Instant sent) {
    return lost_.add(text, sent, sent + seconds(1));
  }

  LostBodies lost_{contract::development_identity_key()};
};

TEST_F(LostBodiesTest, CountsTheLossesOfOneRequestAndOfNoOther) {
  EXPECT_EQ(lost_.losses_of(chat("poison"), kStart), 0U);
  EXPECT_EQ(lose(chat("poison"), kStart), 1U);
  EXPECT_EQ(lose(chat("poison"), kStart + seconds(2)), 2U);
  const Instant now = kStart + seconds(4);
  EXPECT_EQ(lost_.losses_of(chat("poison"), now), 2U);
  EXPECT_EQ(lost_.losses_of(chat("poisom"), now), 0U);
  EXPECT_EQ(lost_.losses_of(chat("poison "), now), 0U);
  EXPECT_EQ(lost_.losses_of({"POST", "/v1/completions", "poison"}, now), 0U);
  EXPECT_EQ(lost_.losses_of({"PUT", "/v1/chat/completions", "poison"}, now), 0U);
}

TEST_F(LostBodiesTest, CopiesThatWereUnderWayTogetherAreOneLoss) {
  EXPECT_EQ(lost_.add(chat("same"), kStart, kStart + seconds(5)), 1U);
  EXPECT_EQ(lost_.add(chat("same"), kStart + seconds(3), kStart + seconds(6)), 1U);
  EXPECT_EQ(lost_.add(chat("same"), kStart + seconds(6), kStart + seconds(7)), 2U);
}

TEST_F(LostBodiesTest, AnAnswerClearsTheRequest) {
  lose(chat("unlucky"), kStart);
  lost_.answered(chat("unlucky"), kStart + seconds(2));
  EXPECT_EQ(lost_.losses_of(chat("unlucky"), kStart + seconds(2)), 0U);
  lost_.answered(chat("never lost"), kStart + seconds(2));
}

TEST_F(LostBodiesTest, ForgetsAfterItsTime) {
  lose(chat("poison"), kStart);
  const Instant last = kStart + seconds(1);
  EXPECT_EQ(lost_.losses_of(chat("poison"), last + LostBodies::kRememberedTime - seconds(1)), 1U);
  EXPECT_EQ(lost_.losses_of(chat("poison"), last + LostBodies::kRememberedTime), 0U);
}

TEST_F(LostBodiesTest, RemembersTheLatestOnly) {
  Instant now = kStart;
  for (std::size_t i = 0; i <= LostBodies::kRememberedMax; ++i) {
    lose(chat("body " + std::to_string(i)), now);
    now += std::chrono::milliseconds(1);
  }
  EXPECT_EQ(lost_.losses_of(chat("body 0"), now), 0U);
  EXPECT_EQ(lost_.losses_of(chat("body 1"), now), 1U);
  EXPECT_EQ(lost_.losses_of(chat("body " + std::to_string(LostBodies::kRememberedMax)), now), 1U);
}

}  // namespace
}  // namespace sightline::retry
