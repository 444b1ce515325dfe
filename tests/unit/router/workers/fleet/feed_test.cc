// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/workers/fleet/feed.h"

#include <gtest/gtest.h>

namespace sightline::fleet {
namespace {

using Ranks = std::vector<FoundRank>;

FoundRank rank_at(std::uint32_t number, const std::string& events) {
  return {.number = number, .events = EventEndpoints{.events = events}};
}

TEST(SameEvents, OfTheSameRanksFromTheSamePlaces) {
  const Ranks two{rank_at(0, "tcp://h:1"), rank_at(1, "tcp://h:2")};
  EXPECT_TRUE(same_events(two, two));
  EXPECT_FALSE(same_events(two, {rank_at(0, "tcp://h:1"), rank_at(1, "tcp://h:3")}));
  EXPECT_FALSE(same_events(two, {rank_at(0, "tcp://h:1"), rank_at(2, "tcp://h:2")}));
  EXPECT_FALSE(same_events(two, {rank_at(0, "tcp://h:1"), {.number = 1}}));
  Ranks replayed = two;
  replayed[0].events->replay = "tcp://h:9";
  EXPECT_FALSE(same_events(two, replayed));
}

TEST(SameEvents, RanksWithoutEventsDoNotMatterButForTheFirstBeingAlone) {
  const FoundRank first = rank_at(0, "tcp://h:1");
  EXPECT_TRUE(same_events({first, {.number = 1}}, {first, {.number = 1}, {.number = 2}}));
  EXPECT_FALSE(same_events({first}, {first, {.number = 1}}));
  EXPECT_TRUE(same_events({{.number = 0}}, {{.number = 0}, {.number = 1}}));
}

}  // namespace
}  // namespace sightline::fleet
