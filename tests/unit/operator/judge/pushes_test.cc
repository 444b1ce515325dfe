// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/pushes.h"

#include <limits>

#include <gtest/gtest.h>

#include "operator/judge/workers.h"
#include "tests/unit/operator/judge/worlds.h"

namespace sightline::judge {
namespace {

std::int64_t generation_of(const ListPush& push) { return *push.body["generation"].integer(); }

// All routers have accepted their lists.
void take(World& world, const std::vector<ListPush>& pushes) {
  for (const ListPush& push : pushes) {
    for (RouterReport& router : world.routers) {
      if (router.pod != push.pod) continue;
      router.generation = push.body["generation"].integer();
      router.pushed = push.body["workers"];
    }
  }
}

TEST(ListsToPush, GoToEveryRouterOnceAndThenToNone) {
  World world = healthy_world();
  const auto pushes = lists_to_push(world);
  ASSERT_EQ(pushes.size(), 2U);
  EXPECT_EQ(generation_of(pushes[0]), 1);
  EXPECT_EQ(pushes[0].body["revision"].text(), "aaa");
  EXPECT_EQ(pushes[0].body["workers"].size(), 2U);
  take(world, pushes);
  EXPECT_TRUE(lists_to_push(world).empty());
}

TEST(ListsToPush, RestartedRouterGetsTheOthersListAndGeneration) {
  World world = healthy_world();
  take(world, lists_to_push(world));
  world.routers[1].generation.reset();
  world.routers[1].pushed = object::Value();
  const auto pushes = lists_to_push(world);
  ASSERT_EQ(pushes.size(), 1U);
  EXPECT_EQ(pushes[0].pod, "r1");
  EXPECT_EQ(generation_of(pushes[0]), 1);
}

TEST(ListsToPush, CountTheGenerationUpWithEveryChange) {
  World world = healthy_world();
  take(world, lists_to_push(world));
  world.pods[4].is_ending = true;
  const auto pushes = lists_to_push(world);
  ASSERT_EQ(pushes.size(), 2U);
  EXPECT_EQ(generation_of(pushes[0]), 2);
  take(world, pushes);
  EXPECT_TRUE(lists_to_push(world).empty());
}

TEST(ListsToPush, EndAForkOfOneGenerationWithAHigherOne) {
  for (const bool is_first : {true, false}) {
    World world = healthy_world();
    take(world, lists_to_push(world));
    world.routers[is_first ? 0 : 1].pushed = object::Value::array();
    const auto pushes = lists_to_push(world);
    ASSERT_EQ(pushes.size(), 2U);
    EXPECT_EQ(generation_of(pushes[0]), 2);
  }
}

TEST(ListsToPush, PushOutranksANewerForeignList) {
  World world = healthy_world();
  take(world, lists_to_push(world));
  world.routers[1].generation = 7;
  world.routers[1].pushed = object::Value::array();
  const auto pushes = lists_to_push(world);
  ASSERT_EQ(pushes.size(), 2U);
  EXPECT_EQ(generation_of(pushes[1]), 8);
}

TEST(ListsToPush, RouterFarAheadDoesNotBlockTheOthersLists) {
  World world = healthy_world();
  take(world, lists_to_push(world));
  world.routers[1].pushed = object::Value::array();
  for (const std::int64_t far : {std::int64_t{1} << 57, std::numeric_limits<std::int64_t>::max()}) {
    world.routers[1].generation = far;
    const auto pushes = lists_to_push(world);
    ASSERT_EQ(pushes.size(), 1U) << "the other has this very list";
    EXPECT_EQ(pushes[0].pod, "r1");
    world.pods[4].is_ending = !world.pods[4].is_ending;
    EXPECT_EQ(lists_to_push(world).size(), 2U);
    EXPECT_EQ(generation_of(lists_to_push(world)[0]), 2);
    world.pods[4].is_ending = !world.pods[4].is_ending;
  }
  world.routers[1].generation = -5;
  EXPECT_EQ(generation_of(lists_to_push(world).at(0)), 1);
}

TEST(ListsToPush, KeepRevisionsApart) {
  World world = healthy_world();
  world.stacks.push_back({"bbb", world.spec});
  world.pods.push_back(worker_pod("w9", "bbb"));
  world.routers[1] = router_report("r1", "bbb");
  for (const ListPush& push : lists_to_push(world)) {
    EXPECT_EQ(push.body["revision"].text(), push.pod == "r0" ? "aaa" : "bbb");
    EXPECT_EQ(push.body["workers"].size(), push.pod == "r0" ? 2U : 1U);
  }
}

TEST(ListsToPush, SaySoToARouterWhenThereIsNoWorker) {
  World world = healthy_world();
  world.pods.clear();
  world.deployments[0].pods = 0;
  const auto pushes = lists_to_push(world);
  ASSERT_EQ(pushes.size(), 2U);
  EXPECT_TRUE(pushes[0].body["workers"].is_array());
  EXPECT_EQ(pushes[0].body["workers"].size(), 0U);
}

TEST(ListsToPush, LeaveOutRoutersThatDoNotAnswer) {
  World world = healthy_world();
  world.routers[0].problem = "no answer";
  ASSERT_EQ(lists_to_push(world).size(), 1U);
  EXPECT_EQ(lists_to_push(world)[0].pod, "r1");
}

void take_pods_of(World& world, const std::string& component) {
  std::erase_if(world.pods, [&](const Pod& pod) { return pod.component == component; });
}

TEST(ListsToPush, KeepListsWhileADeploymentsPodsAreMissing) {
  World world = healthy_world();
  take(world, lists_to_push(world));
  take_pods_of(world, "worker");
  EXPECT_TRUE(lists_to_push(world).empty());
  EXPECT_EQ(unseen_workers(world, world.stacks[0]),
            "Deployment shop-aaa-gpu has 2 pods, but the operator finds 0");
  world.deployments[0].pods = 0;
  ASSERT_EQ(lists_to_push(world).size(), 2U);
  EXPECT_EQ(lists_to_push(world)[0].body["workers"].size(), 0U);
}

TEST(ListsToPush, AreNotEmptiedWhileADeploymentIsNotFound) {
  World world = healthy_world();
  take(world, lists_to_push(world));
  take_pods_of(world, "worker");
  world.deployments.erase(world.deployments.begin());
  EXPECT_TRUE(lists_to_push(world).empty());
}

TEST(ListsToPush, AreEmptyWhenAllPodsLackAddresses) {
  World world = healthy_world();
  take(world, lists_to_push(world));
  for (Pod& pod : world.pods) {
    if (pod.component == "worker") pod.ip.clear();
  }
  EXPECT_EQ(lists_to_push(world).size(), 2U);
}

}  // namespace
}  // namespace sightline::judge
