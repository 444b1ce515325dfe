// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/list_pushes.h"

#include <limits>

#include <gtest/gtest.h>

#include "operator/judge/pool_workers.h"
#include "tests/unit/operator/judge/cluster_states.h"

namespace sightline::judge {
namespace {

std::int64_t generation_of(const ListPush& push) { return *push.body["generation"].integer(); }

// All routers have accepted their lists.
void take(ClusterState& cluster, const std::vector<ListPush>& pushes) {
  for (const ListPush& push : pushes) {
    for (RouterReport& router : cluster.routers) {
      if (router.pod != push.pod) continue;
      router.generation = push.body["generation"].integer();
      router.pushed = push.body["workers"];
    }
  }
}

TEST(ListsToPush, GoToEveryRouterOnceAndThenToNone) {
  ClusterState cluster = healthy_world();
  const auto pushes = lists_to_push(cluster);
  ASSERT_EQ(pushes.size(), 2U);
  EXPECT_EQ(generation_of(pushes[0]), 1);
  EXPECT_EQ(pushes[0].body["revision"].text(), "aaa");
  EXPECT_EQ(pushes[0].body["workers"].size(), 2U);
  take(cluster, pushes);
  EXPECT_TRUE(lists_to_push(cluster).empty());
}

TEST(ListsToPush, RestartedRouterGetsTheOthersListAndGeneration) {
  ClusterState cluster = healthy_world();
  take(cluster, lists_to_push(cluster));
  cluster.routers[1].generation.reset();
  cluster.routers[1].pushed = object::Value();
  const auto pushes = lists_to_push(cluster);
  ASSERT_EQ(pushes.size(), 1U);
  EXPECT_EQ(pushes[0].pod, "r1");
  EXPECT_EQ(generation_of(pushes[0]), 1);
}

TEST(ListsToPush, CountTheGenerationUpWithEveryChange) {
  ClusterState cluster = healthy_world();
  take(cluster, lists_to_push(cluster));
  cluster.pods[4].is_ending = true;
  const auto pushes = lists_to_push(cluster);
  ASSERT_EQ(pushes.size(), 2U);
  EXPECT_EQ(generation_of(pushes[0]), 2);
  take(cluster, pushes);
  EXPECT_TRUE(lists_to_push(cluster).empty());
}

TEST(ListsToPush, EndAForkOfOneGenerationWithAHigherOne) {
  for (const bool is_first : {true, false}) {
    ClusterState cluster = healthy_world();
    take(cluster, lists_to_push(cluster));
    cluster.routers[is_first ? 0 : 1].pushed = object::Value::array();
    const auto pushes = lists_to_push(cluster);
    ASSERT_EQ(pushes.size(), 2U);
    EXPECT_EQ(generation_of(pushes[0]), 2);
  }
}

TEST(ListsToPush, PushOutranksANewerForeignList) {
  ClusterState cluster = healthy_world();
  take(cluster, lists_to_push(cluster));
  cluster.routers[1].generation = 7;
  cluster.routers[1].pushed = object::Value::array();
  const auto pushes = lists_to_push(cluster);
  ASSERT_EQ(pushes.size(), 2U);
  EXPECT_EQ(generation_of(pushes[1]), 8);
}

TEST(ListsToPush, RouterFarAheadDoesNotBlockTheOthersLists) {
  ClusterState cluster = healthy_world();
  take(cluster, lists_to_push(cluster));
  cluster.routers[1].pushed = object::Value::array();
  for (const std::int64_t far : {std::int64_t{1} << 57, std::numeric_limits<std::int64_t>::max()}) {
    cluster.routers[1].generation = far;
    const auto pushes = lists_to_push(cluster);
    ASSERT_EQ(pushes.size(), 1U) << "the other has this very list";
    EXPECT_EQ(pushes[0].pod, "r1");
    cluster.pods[4].is_ending = !cluster.pods[4].is_ending;
    EXPECT_EQ(lists_to_push(cluster).size(), 2U);
    EXPECT_EQ(generation_of(lists_to_push(cluster)[0]), 2);
    cluster.pods[4].is_ending = !cluster.pods[4].is_ending;
  }
  cluster.routers[1].generation = -5;
  EXPECT_EQ(generation_of(lists_to_push(cluster).at(0)), 1);
}

TEST(ListsToPush, KeepRevisionsApart) {
  ClusterState cluster = healthy_world();
  cluster.stacks.push_back({"bbb", cluster.spec});
  cluster.pods.push_back(worker_pod("w9", "bbb"));
  cluster.routers[1] = router_report("r1", "bbb");
  for (const ListPush& push : lists_to_push(cluster)) {
    EXPECT_EQ(push.body["revision"].text(), push.pod == "r0" ? "aaa" : "bbb");
    EXPECT_EQ(push.body["workers"].size(), push.pod == "r0" ? 2U : 1U);
  }
}

TEST(ListsToPush, SaySoToARouterWhenThereIsNoWorker) {
  ClusterState cluster = healthy_world();
  cluster.pods.clear();
  cluster.deployments[0].pods = 0;
  const auto pushes = lists_to_push(cluster);
  ASSERT_EQ(pushes.size(), 2U);
  EXPECT_TRUE(pushes[0].body["workers"].is_array());
  EXPECT_EQ(pushes[0].body["workers"].size(), 0U);
}

TEST(ListsToPush, LeaveOutRoutersThatDoNotAnswer) {
  ClusterState cluster = healthy_world();
  cluster.routers[0].problem = "no answer";
  ASSERT_EQ(lists_to_push(cluster).size(), 1U);
  EXPECT_EQ(lists_to_push(cluster)[0].pod, "r1");
}

void take_pods_of(ClusterState& cluster, const std::string& component) {
  std::erase_if(cluster.pods, [&](const Pod& pod) { return pod.component == component; });
}

TEST(ListsToPush, KeepListsWhileADeploymentsPodsAreMissing) {
  ClusterState cluster = healthy_world();
  take(cluster, lists_to_push(cluster));
  take_pods_of(cluster, "worker");
  EXPECT_TRUE(lists_to_push(cluster).empty());
  EXPECT_EQ(unseen_workers(cluster, cluster.stacks[0]),
            "Deployment shop-aaa-gpu has 2 pods, but the operator finds 0");
  cluster.deployments[0].pods = 0;
  ASSERT_EQ(lists_to_push(cluster).size(), 2U);
  EXPECT_EQ(lists_to_push(cluster)[0].body["workers"].size(), 0U);
}

TEST(ListsToPush, AreNotEmptiedWhileADeploymentIsNotFound) {
  ClusterState cluster = healthy_world();
  take(cluster, lists_to_push(cluster));
  take_pods_of(cluster, "worker");
  cluster.deployments.erase(cluster.deployments.begin());
  EXPECT_TRUE(lists_to_push(cluster).empty());
}

TEST(ListsToPush, AreEmptyWhenAllPodsLackAddresses) {
  ClusterState cluster = healthy_world();
  take(cluster, lists_to_push(cluster));
  for (Pod& pod : cluster.pods) {
    if (pod.component == "worker") pod.ip.clear();
  }
  EXPECT_EQ(lists_to_push(cluster).size(), 2U);
}

}  // namespace
}  // namespace sightline::judge
