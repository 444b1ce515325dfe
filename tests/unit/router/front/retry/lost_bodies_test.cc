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
  // Adds an attempt that takes one second and is then lost.
  std::uint32_t lose(const SentText& text, Instant sent, std::string_view worker = "w") {
    return lost_.add(text, lost_.id_of(text.body),
                     {.worker = worker, .sent = sent, .now = sent + seconds(1)});
  }
  std::uint32_t losses_of(const SentText& text, Instant now) {
    return lost_.record_of(text, lost_.id_of(text.body), now).losses;
  }
  std::uint32_t losses_of(std::string_view body, Instant now) { return losses_of(chat(body), now); }
  void answer(std::string_view body) { lost_.answered(chat(body), lost_.id_of(body)); }

  LostBodies lost_{contract::development_identity_key()};
};

TEST_F(LostBodiesTest, CountsLossesForEachRequestAlone) {
  EXPECT_EQ(losses_of(chat("poison"), kStart), 0U);
  EXPECT_EQ(lose(chat("poison"), kStart), 1U);
  EXPECT_EQ(lose(chat("poison"), kStart + seconds(2)), 2U);
  const Instant now = kStart + seconds(4);
  EXPECT_EQ(losses_of(chat("poison"), now), 2U);
  EXPECT_EQ(losses_of(chat("poisom"), now), 0U);
  EXPECT_EQ(losses_of(chat("poison "), now), 0U);
  EXPECT_EQ(losses_of({"POST", "/v1/completions", "poison"}, now), 0U);
  EXPECT_EQ(losses_of({"PUT", "/v1/chat/completions", "poison"}, now), 0U);
}

TEST_F(LostBodiesTest, RecognisesRequestsLikeThoseItRemembers) {
  EXPECT_FALSE(lost_.knows_like(chat("poison"), kStart));
  lose(chat("poison"), kStart);
  const Instant now = kStart + seconds(1);
  EXPECT_TRUE(lost_.knows_like(chat("poison"), now));
  EXPECT_TRUE(lost_.knows_like(chat("harmle"), now)) << "of the same length";
  EXPECT_FALSE(lost_.knows_like(chat("poison "), now));
  EXPECT_FALSE(lost_.knows_like({"PUT", "/v1/chat/completions", "poison"}, now));
  EXPECT_FALSE(lost_.knows_like(chat("poison"), now + LostBodies::kRememberedTime));
}

TEST_F(LostBodiesTest, CopiesInFlightTogetherAreOneLoss) {
  const auto add = [this](std::string_view worker, int sent, int now) {
    return lost_.add(
        chat("same"), lost_.id_of("same"),
        {.worker = worker, .sent = kStart + seconds(sent), .now = kStart + seconds(now)});
  };
  EXPECT_EQ(add("a", 0, 5), 1U);
  EXPECT_EQ(add("a", 3, 6), 1U);
  EXPECT_EQ(add("b", 3, 6), 1U);
  EXPECT_EQ(add("a", 7, 8), 2U);
}

// Three workers die one after the other, each with thirty requests in flight. No request is the
// cause. Requests of the first worker are sent again to the other two.
TEST_F(LostBodiesTest, DeathWithManyRequestsBlamesNone) {
  const auto body = [](int worker, int i) {
    return "body " + std::to_string(worker) + " " + std::to_string(i);
  };
  for (int i = 0; i < 30; ++i) EXPECT_EQ(lose(chat(body(0, i)), kStart, "a"), i == 0 ? 1U : 0U);
  for (const int worker : {1, 2}) {
    const Instant later = kStart + seconds(2 * worker);
    const std::string name(1, static_cast<char>('a' + worker));
    for (int i = 0; i < 30; ++i) lose(chat(body(worker, i)), later, name);
    for (int i = 0; i < 8; ++i) lose(chat(body(0, 8 * worker + i)), later, name);
  }
  for (int worker = 0; worker < 3; ++worker) {
    for (int i = 0; i < 30; ++i) EXPECT_EQ(losses_of(body(worker, i), kStart + seconds(6)), 0U);
  }
}

TEST_F(LostBodiesTest, AnswersOfTheOthersLeaveOneToBlame) {
  for (const int death : {0, 2}) {
    const Instant now = kStart + seconds(death);
    for (const char* body : {"poison", "x", "y"}) lose(chat(body), now);
    EXPECT_EQ(losses_of("poison", now + seconds(1)), static_cast<std::uint32_t>(death) / 2);
    for (const char* body : {"x", "y"}) answer(body);
  }
  EXPECT_EQ(losses_of("poison", kStart + seconds(4)), 2U);
  EXPECT_EQ(losses_of("x", kStart + seconds(4)), 0U);
}

TEST_F(LostBodiesTest, ManyDeathsBlameTheirOnlyCommonRequest) {
  const auto deaths = static_cast<int>(LostBodies::kCommonDeathsMin);
  for (int death = 0; death < deaths; ++death) {
    const Instant now = kStart + seconds(2 * death);
    EXPECT_EQ(losses_of("poison", now), 0U);
    lose(chat("poison"), now);
    for (int i = 0; i < 3; ++i) lose(chat("body " + std::to_string(3 * death + i)), now);
  }
  EXPECT_EQ(losses_of("poison", kStart + seconds(2 * deaths)), LostBodies::kCommonDeathsMin);
}

TEST_F(LostBodiesTest, ForgottenRequestMayStillBeTheCause) {
  lose(chat("old"), kStart);
  lose(chat("unlucky"), kStart);
  const Instant later = kStart + LostBodies::kRememberedTime - seconds(1);
  lose(chat("unlucky"), later);
  EXPECT_EQ(losses_of("unlucky", later + seconds(5)), 1U) << "not for the death with the old one";
}

TEST_F(LostBodiesTest, AnswerClearsTheRequest) {
  lose(chat("unlucky"), kStart);
  answer("unlucky");
  EXPECT_EQ(losses_of(chat("unlucky"), kStart + seconds(2)), 0U);
  answer("never lost");
}

TEST_F(LostBodiesTest, ForgetsLossesAfterTheRememberedTime) {
  lose(chat("poison"), kStart);
  const Instant last = kStart + seconds(1);
  EXPECT_EQ(losses_of(chat("poison"), last + LostBodies::kRememberedTime - seconds(1)), 1U);
  EXPECT_EQ(losses_of(chat("poison"), last + LostBodies::kRememberedTime), 0U);
}

TEST_F(LostBodiesTest, RemembersOnlyTheLatestBodies) {
  Instant now = kStart;
  for (std::size_t i = 0; i <= LostBodies::kRememberedMax; ++i) {
    lose(chat("body " + std::to_string(i)), now, std::to_string(i));
    now += std::chrono::milliseconds(1);
  }
  EXPECT_EQ(losses_of(chat("body 0"), now), 0U);
  EXPECT_EQ(losses_of(chat("body 1"), now), 1U);
  EXPECT_EQ(losses_of(chat("body " + std::to_string(LostBodies::kRememberedMax)), now), 1U);
}

}  // namespace
}  // namespace sightline::retry
