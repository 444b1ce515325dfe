// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/object_status.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "operator/judge/pool_workers.h"
#include "tests/unit/operator/judge/cluster_states.h"

namespace sightline::judge {
namespace {

using crd::RevisionState;
using crd::RolloutPhase;

const WallTime kNow{std::chrono::hours(5)};

Findings findings_of(plan::Phase phase, std::string message = "a step") {
  Findings findings;
  findings.plan.phase = phase;
  findings.plan.message = std::move(message);
  return findings;
}

TEST(Status, OfAHealthyObjectCountsWhatThereIs) {
  const crd::Status status = status_of(healthy_world(), findings_of(plan::Phase::Completed), kNow);
  EXPECT_EQ(status.observed_generation, 3);
  EXPECT_EQ(status.url, "http://shop.prod.svc:8000/v1");
  EXPECT_EQ(status.workers, "2/2");
  EXPECT_EQ(status.backends, "vllm");
  EXPECT_EQ(status.current_revision, "aaa");
  EXPECT_EQ(status.target_revision, "aaa");
  EXPECT_EQ(status.frontend, (crd::ReadyCount{.desired = 2, .ready = 2}));
  EXPECT_EQ(status.router, (crd::ReadyCount{.desired = 2, .ready = 2}));
  ASSERT_EQ(status.revisions.size(), 1U);
  EXPECT_EQ(status.revisions[0].state, RevisionState::Serving);
  EXPECT_EQ(status.revisions[0].traffic_percent, 100);
  EXPECT_EQ(status.revisions[0].routable, 2);
  ASSERT_EQ(status.pools.size(), 1U);
  EXPECT_EQ(status.pools[0].routable, 2);
  EXPECT_EQ(status.pools[0].updated, 2);
}

TEST(Status, OfAnUnchangedWorldIsUnchanged) {
  ClusterState cluster = healthy_world();
  cluster.status = status_of(cluster, findings_of(plan::Phase::Completed), kNow);
  const WallTime later = kNow + std::chrono::hours(1);
  EXPECT_EQ(status_of(cluster, findings_of(plan::Phase::Completed), later), cluster.status);
}

TEST(Status, ShowsTheTrafficShareOfTwoRevisions) {
  ClusterState cluster = healthy_world();
  cluster.target = "bbb";
  cluster.stacks.push_back({"bbb", cluster.spec});
  cluster.stacks.back().spec.kv.block_size = 32;
  cluster.pods[5].revision = "bbb";
  cluster.pods[1].revision = "bbb";
  cluster.routers.push_back(router_report("r8", "bbb"));
  cluster.routers.push_back(router_report("r9", "bbb"));
  const crd::Status status = status_of(cluster, findings_of(plan::Phase::Moving), kNow);
  ASSERT_EQ(status.revisions.size(), 2U);
  EXPECT_EQ(status.revisions[0].state, RevisionState::Draining);
  EXPECT_EQ(status.revisions[0].traffic_percent, 50);
  EXPECT_EQ(status.revisions[1].state, RevisionState::Serving);
  EXPECT_EQ(status.revisions[1].block_size, 32);
  EXPECT_EQ(status.current_revision, "aaa");
  EXPECT_EQ(status.target_revision, "bbb");
  EXPECT_EQ(status.workers, "2/2");
  EXPECT_EQ(status.pools[0].updated, 1);
}

TEST(Rolling, NamesADeploymentUntilAllItsPodsAreUpdated) {
  ClusterState cluster = healthy_world();
  EXPECT_EQ(rolling_of(cluster), "");
  Deployment& frontends = cluster.deployments[2];
  frontends.is_observed = false;
  EXPECT_EQ(rolling_of(cluster),
            "the Deployment controller has not observed the latest spec of shop-aaa-frontend");
  frontends.is_observed = true;
  frontends.pods = 3;
  frontends.updated = 1;
  EXPECT_EQ(rolling_of(cluster), "shop-aaa-frontend has 1 of 2 pods with its latest template");
  frontends.updated = 2;
  EXPECT_EQ(rolling_of(cluster), "shop-aaa-frontend has 1 pod with an older template");
}

TEST(Status, LimitsBlockSizesToTheSchema) {
  ClusterState cluster = healthy_world();
  cluster.routers.clear();
  for (int i = -20; i < 40; ++i) {
    RouterReport router = router_report("r" + std::to_string(i), "aaa");
    router.workers["w0"].block_size = i;
    cluster.routers.push_back(router);
  }
  const auto sizes = status_of(cluster, {}, {}).pools.at(0).reported_block_sizes;
  EXPECT_EQ(sizes.size(), 16U);
  for (const std::int64_t size : sizes) EXPECT_GT(size, 0);
}

// Fits into the time of a test, because names are looked up and not searched for.
TEST(Status, CountsTheLargestNumberOfWorkers) {
  ClusterState cluster = healthy_world();
  const crd::Pool one = cluster.spec.pools[0];
  cluster.spec.pools.clear();
  std::map<std::string, WorkerReport> workers;
  std::vector<Pod> pods(cluster.pods.begin(), cluster.pods.begin() + 4);
  for (int i = 0; i < 16; ++i) {
    crd::Pool pool = one;
    pool.name = "pool-" + std::to_string(i);
    pool.replicas = 1000;
    cluster.spec.pools.push_back(pool);
    for (int k = 0; k < 1000; ++k) {
      pods.push_back(worker_pod("shop-aaa-" + pool.name + "-" + std::to_string(k), "aaa"));
      pods.back().pool = pool.name;
      workers[pods.back().name] = admitted();
    }
  }
  std::sort(pods.begin(), pods.end(),
            [](const Pod& left, const Pod& right) { return left.name < right.name; });
  cluster.pods = std::move(pods);
  cluster.stacks = {{"aaa", cluster.spec}};
  for (RouterReport& router : cluster.routers) router.workers = workers;
  EXPECT_EQ(status_of(cluster, {}, {}).workers, "16000/16000");
  EXPECT_EQ(revisions_of(cluster).at(0).pools.at("pool-7").routable, 1000);
}

TEST(Rollout, BeginsWithATargetAndEndsWhenThePlanDoes) {
  ClusterState cluster = healthy_world();
  const auto first = rollout_of(cluster, findings_of(plan::Phase::Moving).plan, kNow);
  EXPECT_EQ(first.phase, RolloutPhase::InProgress);
  EXPECT_EQ(first.start_time, "1970-01-01T05:00:00Z");
  cluster.status.rollout = first;
  cluster.status.target_revision = "aaa";
  const WallTime later = kNow + std::chrono::minutes(10);
  const auto second = rollout_of(cluster, findings_of(plan::Phase::Moving, "another").plan, later);
  EXPECT_EQ(second.start_time, first.start_time);
  EXPECT_EQ(second.last_progress_time, "1970-01-01T05:10:00Z");
  EXPECT_EQ(rollout_of(cluster, findings_of(plan::Phase::Completed).plan, later).phase,
            RolloutPhase::Completed);
}

TEST(Rollout, IsStuckAfterTheDeadlineUntilTheNextStep) {
  ClusterState cluster = healthy_world();
  cluster.spec.rollout.progress_deadline = "30m";
  cluster.status.target_revision = "aaa";
  cluster.status.rollout = rollout_of(cluster, findings_of(plan::Phase::Moving).plan, kNow);
  const WallTime within = kNow + std::chrono::minutes(30);
  const WallTime after = within + std::chrono::seconds(1);
  EXPECT_EQ(rollout_of(cluster, findings_of(plan::Phase::Moving).plan, within).phase,
            RolloutPhase::InProgress);
  EXPECT_EQ(rollout_of(cluster, findings_of(plan::Phase::Moving).plan, after).phase,
            RolloutPhase::Stuck);
  cluster.status.rollout.phase = RolloutPhase::Stuck;
  EXPECT_EQ(
      rollout_of(cluster, findings_of(plan::Phase::Moving, "a worker came").plan, after).phase,
      RolloutPhase::InProgress);
}

TEST(Rollout, BeginsAgainWithAnotherTarget) {
  ClusterState cluster = healthy_world();
  cluster.status.rollout = rollout_of(cluster, findings_of(plan::Phase::Moving).plan, kNow);
  cluster.status.target_revision = "aaa";
  cluster.target = "bbb";
  const WallTime later = kNow + std::chrono::minutes(10);
  EXPECT_EQ(rollout_of(cluster, findings_of(plan::Phase::Moving).plan, later).start_time,
            "1970-01-01T05:10:00Z");
}

}  // namespace
}  // namespace sightline::judge
