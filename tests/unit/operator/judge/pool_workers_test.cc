// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/pool_workers.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "operator/judge/counts.h"
#include "tests/unit/operator/judge/cluster_states.h"

namespace sightline::judge {
namespace {

using Fields = desired::WorkerFields;

const Stack& only(const ClusterState& cluster) { return cluster.stacks.front(); }

TEST(WorkersOf, ARevisionAreItsPodsWithAnAddressByName) {
  ClusterState cluster = healthy_world();
  cluster.pods.push_back(worker_pod("w2", "aaa"));
  cluster.pods.back().ip.clear();
  cluster.pods.push_back(worker_pod("x0", "bbb"));
  const std::vector<Fields> want = {
      {{"name", "w0"}, {"url", "http://10.0.0.1:8000"}, {"agent", "true"}, {"block_size", "16"}},
      {{"name", "w1"}, {"url", "http://10.0.0.1:8000"}, {"agent", "true"}, {"block_size", "16"}}};
  EXPECT_EQ(workers_of(cluster, only(cluster)), want);
}

TEST(WorkersOf, APodThatEndsIsDrainedUntilItIsGone) {
  ClusterState cluster = healthy_world();
  cluster.pods[4].is_ending = true;
  EXPECT_EQ(workers_of(cluster, only(cluster))[0].at("drain"), "true");
  cluster.pods[4].is_over = true;
  EXPECT_EQ(workers_of(cluster, only(cluster)).size(), 1U);
}

TEST(WorkersOf, APoolOfEndpointsAreItsUrls) {
  ClusterState cluster = healthy_world();
  cluster.pods.clear();
  crd::Pool pool;
  pool.name = "outside";
  pool.backend = crd::Backend::Sglang;
  pool.endpoints = {{.name = "e0", .url = "http://engine:30000", .events = {}, .replay = {}}};
  cluster.stacks[0].spec.pools = {pool};
  const std::vector<Fields> want = {{{"name", "e0"},
                                     {"url", "http://engine:30000"},
                                     {"agent", "true"},
                                     {"block_size", "16"},
                                     {"family", "sglang"}}};
  EXPECT_EQ(workers_of(cluster, only(cluster)), want);
}

TEST(WorkersOf, PodsOfAnAddressOfVersionSixHaveBrackets) {
  ClusterState cluster = healthy_world();
  cluster.pods[4].ip = "fd00::7";
  EXPECT_EQ(workers_of(cluster, only(cluster))[0].at("url"), "http://[fd00::7]:8000");
}

TEST(WorkersOf, SelectedPodsBelongToEveryRevisionThatHasTheirPool) {
  ClusterState cluster = healthy_world();
  crd::Pool pool;
  pool.name = "theirs";
  pool.selector.emplace();
  pool.selector->port = 8123;
  cluster.stacks[0].spec.pools = {pool};
  cluster.stacks.push_back({"bbb", cluster.stacks[0].spec});
  Pod pod = worker_pod("t0", "");
  pod.component.clear();
  pod.pool = "theirs";
  cluster.pods = {pod};
  for (const Stack& stack : cluster.stacks) {
    ASSERT_EQ(workers_of(cluster, stack).size(), 1U) << stack.revision;
    EXPECT_EQ(workers_of(cluster, stack)[0].at("url"), "http://10.0.0.1:8123");
  }
}

// Two selected pods that the routers of "aaa" admit, and a newer revision "bbb" that has them too.
ClusterState world_with_lent_workers() {
  ClusterState cluster = healthy_world();
  cluster.spec.pools[0].worker_template.reset();
  cluster.spec.pools[0].selector.emplace();
  cluster.stacks = {{"aaa", cluster.spec}, {"bbb", cluster.spec}};
  cluster.target = "bbb";
  for (Pod& pod : cluster.pods) {
    if (pod.component != "worker") continue;
    pod.component.clear();
    pod.revision.clear();
  }
  return cluster;
}

TEST(LentWorkers, AreCountedByTheirAdmissionWhileTheyDoNotEnd) {
  ClusterState cluster = world_with_lent_workers();
  using Counts = std::map<Admission, std::int64_t>;
  EXPECT_EQ(lent_to(cluster, cluster.stacks[0]), (Counts{{Admission::Admitted, 2}}));
  EXPECT_EQ(lent_to(cluster, cluster.stacks[1]), (Counts{{Admission::Unknown, 2}}));
  std::find_if(cluster.pods.begin(), cluster.pods.end(), [](const Pod& pod) {
    return pod.component.empty();
  })->is_ending = true;
  EXPECT_EQ(lent_to(cluster, cluster.stacks[0]), (Counts{{Admission::Admitted, 1}}));
  EXPECT_TRUE(lent_to(healthy_world(), healthy_world().stacks[0]).empty());
}

TEST(Replaced, ReplacedOnceTheTargetHasLentWorkersAndAFrontend) {
  ClusterState cluster = world_with_lent_workers();
  EXPECT_FALSE(is_replaced(cluster, cluster.stacks[0]));
  for (const char* name : {"b0", "b1"}) cluster.routers.push_back(router_report(name, "bbb"));
  EXPECT_FALSE(is_replaced(cluster, cluster.stacks[0])) << "who would be asked?";
  Pod frontend;
  frontend.component = "frontend";
  frontend.revision = "bbb";
  frontend.is_ready = true;
  cluster.pods.push_back(frontend);
  EXPECT_TRUE(is_replaced(cluster, cluster.stacks[0]));
  cluster.routers.back().workers.erase("w1");
  EXPECT_FALSE(is_replaced(cluster, cluster.stacks[0])) << "w1 would be missed";
}

TEST(Replaced, IsARevisionWhoseLentWorkersItsRoutersRefuse) {
  ClusterState cluster = world_with_lent_workers();
  for (RouterReport& router : cluster.routers) router.workers.clear();
  EXPECT_TRUE(is_replaced(cluster, cluster.stacks[0]));
  for (RouterReport& router : cluster.routers) router.problem = "no answer within 2 s";
  EXPECT_FALSE(is_replaced(cluster, cluster.stacks[0])) << "silence is no refusal";
}

TEST(Admission, NeedsAMajorityOfTheWantedRouters) {
  ClusterState cluster = healthy_world();
  EXPECT_EQ(admission_of(cluster, only(cluster), "w0"), Admission::Admitted);
  cluster.routers[1].workers["w0"].is_ready = false;
  EXPECT_EQ(admission_of(cluster, only(cluster), "w0"), Admission::Refused);
  cluster.stacks[0].spec.router.replicas = 1;
  EXPECT_EQ(admission_of(cluster, only(cluster), "w0"), Admission::Admitted);
}

TEST(Admission, IsUnknownWhereTooFewRoutersAnswer) {
  ClusterState cluster = healthy_world();
  cluster.routers[1].problem = "no answer within 2 s";
  EXPECT_EQ(admission_of(cluster, only(cluster), "w0"), Admission::Unknown);
  EXPECT_EQ(admission_of(cluster, only(cluster), "nobody"), Admission::Refused);
}

TEST(Admission, IgnoresUnreadyRoutersAndOtherRevisions) {
  ClusterState cluster = healthy_world();
  cluster.routers[0].is_ready = false;
  EXPECT_EQ(admission_of(cluster, only(cluster), "w0"), Admission::Unknown);
  cluster.routers[0].is_ready = true;
  cluster.routers[0].revision = "bbb";
  EXPECT_EQ(admission_of(cluster, only(cluster), "w0"), Admission::Unknown);
}

TEST(Admission, EnginesWithoutReadEventsAreAdmittedWhenServing) {
  ClusterState cluster = healthy_world();
  for (RouterReport& router : cluster.routers) {
    router.workers["w0"] = {.state = "unverified", .is_ready = false, .reason = "no events"};
  }
  EXPECT_EQ(admission_of(cluster, only(cluster), "w0"), Admission::Refused);
  cluster.stacks[0].spec.pools[0].backend = crd::Backend::Trtllm;
  EXPECT_EQ(admission_of(cluster, only(cluster), "w0"), Admission::Admitted);
  cluster.stacks[0].spec.pools[0].backend = crd::Backend::Vllm;
  cluster.stacks[0].spec.kv.events = crd::EventsMode::Approximate;
  EXPECT_EQ(admission_of(cluster, only(cluster), "w0"), Admission::Admitted);
}

TEST(Routable, IsWhatTheGateSaidLastWhileRoutersAreAway) {
  ClusterState cluster = healthy_world();
  cluster.routers.clear();
  EXPECT_TRUE(is_routable(cluster, only(cluster), "w0"));
  cluster.pods[4].routable = false;
  EXPECT_FALSE(is_routable(cluster, only(cluster), "w0"));
}

TEST(Gates, FollowTheRoutersAndAreWrittenOnlyWhereTheyChange) {
  ClusterState cluster = healthy_world();
  EXPECT_TRUE(gates_to_set(cluster).empty());
  cluster.pods[4].routable = std::nullopt;
  cluster.routers[0].workers.erase("w1");
  EXPECT_EQ(gates_to_set(cluster), (std::map<std::string, bool>{{"w0", true}, {"w1", false}}));
}

TEST(Gates, OfPodsThatEndAreClosed) {
  ClusterState cluster = healthy_world();
  cluster.pods[5].is_ending = true;
  EXPECT_EQ(gates_to_set(cluster), (std::map<std::string, bool>{{"w1", false}}));
}

TEST(Gates, StayWhileNoRouterAnswersButAreNamedOnce) {
  ClusterState cluster = healthy_world();
  cluster.routers.clear();
  EXPECT_TRUE(gates_to_set(cluster).empty());
  cluster.pods[4].routable = std::nullopt;
  EXPECT_EQ(gates_to_set(cluster), (std::map<std::string, bool>{{"w0", false}}));
}

TEST(RevisionsOf, CountsTerminatingPodsButNotAsRoutable) {
  ClusterState cluster = healthy_world();
  cluster.pods[5].is_ending = true;
  cluster.pods.push_back(worker_pod("w2", "aaa"));
  cluster.pods.back().is_over = true;
  const auto revisions = revisions_of(cluster);
  ASSERT_EQ(revisions.size(), 1U);
  EXPECT_EQ(revisions[0].pools.at("gpu"), (plan::PoolCount{.wanted = 2, .pods = 2, .routable = 1}));
}

crd::Pool selector_pool(const std::string& name) {
  crd::Pool pool;
  pool.name = name;
  pool.selector.emplace();
  return pool;
}

ClusterState world_of_two_selectors() {
  ClusterState cluster = healthy_world();
  crd::Pool outside;
  outside.name = "outside";
  outside.endpoints = {{.name = "e0", .url = "http://10.0.0.9:8000", .events = {}, .replay = {}}};
  cluster.spec.pools = {selector_pool("second"), selector_pool("first"), outside};
  cluster.stacks[0].spec = cluster.spec;
  std::erase_if(cluster.pods, [](const Pod& pod) { return pod.component == "worker"; });
  Pod pod = worker_pod("e0", {});
  pod.component.clear();
  pod.pool = "second";
  pod.also_in = {"first"};
  cluster.pods.insert(cluster.pods.begin(), pod);
  return cluster;
}

TEST(Workers, OfTwoPoolsCountOnceForTheFirst) {
  const ClusterState cluster = world_of_two_selectors();
  const auto workers = workers_of(cluster, cluster.stacks[0]);
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers[0].at("url"), "http://10.0.0.1:8000");
  EXPECT_EQ(pool_of_worker(cluster, cluster.stacks[0], "e0")->name, "second");
  EXPECT_EQ(workers_named_twice(cluster), std::vector<std::string>{"e0 (second, first, outside)"});
}

TEST(Workers, SharedPodsStayWithARevisionOfOnePool) {
  ClusterState cluster = world_of_two_selectors();
  cluster.stacks[0].spec.pools = {selector_pool("first")};
  EXPECT_EQ(workers_of(cluster, cluster.stacks[0]).size(), 1U);
  EXPECT_EQ(pool_of_worker(cluster, cluster.stacks[0], "e0")->name, "first");
}

}  // namespace
}  // namespace sightline::judge
