// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "router/front/push/warmup_check.h"

#include <chrono>

#include <gtest/gtest.h>

namespace sightline::push {
namespace {

using std::chrono::seconds;

struct Situation {
  fleet::FleetSnapshot fleet;
  lists::InForce list;

  // Adds a ready worker, which was asked already. `unverified` says why its only rank is not
  // verified. A null `unverified` means that the worker publishes no events.
  void add(const std::string& name, const char* unverified) {
    fleet::Worker worker =
        fleet::view_of(*contract::parse_worker("name=" + name + ",url=http://h:1"));
    worker.was_asked = true;
    worker.state = fleet::WorkerState::Ready;
    if (unverified != nullptr) {
      worker.ranks[0].feed.emplace();
      worker.ranks[0].feed->unverified = unverified;
      if (*unverified != '\0') worker.state = fleet::WorkerState::Unverified;
    }
    list.source = lists::ListSource::File;
    list.workers.push_back(worker.spec);
    fleet.workers.push_back(std::make_shared<const fleet::Worker>(std::move(worker)));
  }
};

TEST(WarmupCheck, FailsWithoutAWorkerList) {
  WarmupCheck check{seconds(30)};
  EXPECT_FALSE(check.look({}, {}, Instant{}).ok());
  EXPECT_FALSE(check.look({}, {}, Instant{} + seconds(100)).ok());
}

TEST(WarmupCheck, StaysReadyOnceAllWorkersAreLearnt) {
  WarmupCheck check{seconds(30)};
  Situation learnt;
  learnt.add("a", "");
  learnt.add("no-events", nullptr);
  const auto done = check.look(learnt.fleet, learnt.list, Instant{});
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(*done, "");
  learnt.add("late", "replaying events");
  EXPECT_TRUE(check.look(learnt.fleet, learnt.list, Instant{} + seconds(1)).ok());
}

TEST(WarmupCheck, WaitsForReplayUntilTheTimeout) {
  WarmupCheck check{seconds(30)};
  Situation slow;
  slow.add("a", "");
  slow.add("b", "replaying events");
  const auto early = check.look(slow.fleet, slow.list, Instant{} + seconds(5));
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().message,
            "1 of 2 workers are pending, first b: replaying events. The router waits at most 30 "
            "s more");
  EXPECT_FALSE(check.look(slow.fleet, slow.list, Instant{} + seconds(34)).ok());
  const auto late = check.look(slow.fleet, slow.list, Instant{} + seconds(35));
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(*late,
            "incomplete after 30 s (--ready-timeout): 1 of 2 workers are pending, first b: "
            "replaying events");
}

TEST(WarmupCheck, WaitsUntilTheFleetTakesTheList) {
  WarmupCheck check{seconds(30)};
  Situation next;
  next.list.source = lists::ListSource::Push;
  next.list.workers.push_back(*contract::parse_worker("url=http://h:1"));
  const auto looked = check.look(next.fleet, next.list, Instant{});
  ASSERT_FALSE(looked.ok());
  EXPECT_NE(looked.error().message.find("is not applied yet"), std::string::npos);
}

TEST(WarmupCheck, WaitsForUnaskedWorkersButNotForDownOnes) {
  Situation down;
  down.add("a", "event connection lost");
  auto worker = *down.fleet.workers[0];
  worker.state = fleet::WorkerState::Down;
  down.fleet.workers[0] = std::make_shared<const fleet::Worker>(worker);
  EXPECT_TRUE(WarmupCheck(seconds(30)).look(down.fleet, down.list, Instant{}).ok());
  worker.was_asked = false;
  down.fleet.workers[0] = std::make_shared<const fleet::Worker>(worker);
  EXPECT_FALSE(WarmupCheck(seconds(30)).look(down.fleet, down.list, Instant{}).ok());
}

}  // namespace
}  // namespace sightline::push
