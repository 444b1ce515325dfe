// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <gtest/gtest.h>

#include "router/replicas/follower/follower.h"
#include "tests/unit/router/replicas/follower/fixture.h"

namespace sightline::follower {
namespace {

TEST_F(FrameFollowerTest, AlwaysLateMessagesNeverVerify) {
  make();
  settle();
  live_with_delay(seconds(10), seconds(8));
  EXPECT_EQ(live_with_delay(seconds(60), seconds(8)), 0);
  EXPECT_GT(dropped(Drop::StaleAnswer), 10U);
}

TEST_F(FrameFollowerTest, MessagesWithinTheDelayLimitVerify) {
  make();
  settle();
  live_with_delay(seconds(10), seconds(3));
  EXPECT_EQ(live_with_delay(seconds(60), seconds(3)), 1) << reason();
}

TEST_F(FrameFollowerTest, EachRequestIsNewerAndNamesTheLastAgent) {
  make();
  settle();
  agent.publish({removal(1)}, false);
  follower->hear(agent.publish({}, true), now);
  follower->relearn(now);
  wait(seconds(5));
  std::uint64_t number = 0;
  for (const Body& ask : asked) {
    frames::Freshness freshness;
    std::visit(
        [&](const auto& body) {
          if constexpr (requires { body.freshness; }) freshness = body.freshness;
        },
        ask);
    EXPECT_EQ(freshness.number, ++number);
    EXPECT_EQ(freshness.agent, number == 1 ? 0 : agent.instance.number);
  }
  EXPECT_GT(count<frames::RelearnAsk>() + count<frames::RangeAsk>(), 1U);
}

TEST_F(FrameFollowerTest, AnAgentThatEndedIsNamed) {
  make();
  settle();
  agents.clear();
  follower->hear(frames::Bye{agent.instance.number}, now);
  talk();
  EXPECT_NE(reason().find("its agent a has been dead since "), std::string::npos) << reason();
  EXPECT_NE(reason().find("it announced its end"), std::string::npos) << reason();
  EXPECT_EQ(follower->status().dead_since, now);
  agents = {&other};
  wait(seconds(2));
  EXPECT_TRUE(is_verified()) << reason();
  EXPECT_FALSE(follower->status().dead_since);
}

}  // namespace
}  // namespace sightline::follower
