// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/workers.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "operator/judge/counts.h"
#include "tests/unit/operator/judge/worlds.h"

namespace sightline::judge {
namespace {

using Fields = desired::WorkerFields;

const Stack& only(const World& world) { return world.stacks.front(); }

TEST(WorkersOf, ARevisionAreItsPodsWithAnAddressByName) {
  World world = healthy_world();
  world.pods.push_back(worker_pod("w2", "aaa"));
  world.pods.back().ip.clear();
  world.pods.push_back(worker_pod("x0", "bbb"));
  const std::vector<Fields> want = {
      {{"name", "w0"}, {"url", "http://10.0.0.1:8000"}, {"agent", "true"}, {"block_size", "16"}},
      {{"name", "w1"}, {"url", "http://10.0.0.1:8000"}, {"agent", "true"}, {"block_size", "16"}}};
  EXPECT_EQ(workers_of(world, only(world)), want);
}

TEST(WorkersOf, APodThatEndsIsDrainedUntilItIsGone) {
  World world = healthy_world();
  world.pods[4].is_ending = true;
  EXPECT_EQ(workers_of(world, only(world))[0].at("drain"), "true");
  world.pods[4].is_over = true;
  EXPECT_EQ(workers_of(world, only(world)).size(), 1U);
}

TEST(WorkersOf, APoolOfEndpointsAreItsUrls) {
  World world = healthy_world();
  world.pods.clear();
  crd::Pool pool;
  pool.name = "outside";
  pool.backend = crd::Backend::Sglang;
  pool.endpoints = {{.name = "e0", .url = "http://engine:30000", .events = {}, .replay = {}}};
  world.stacks[0].spec.pools = {pool};
  const std::vector<Fields> want = {{{"name", "e0"},
                                     {"url", "http://engine:30000"},
                                     {"agent", "true"},
                                     {"block_size", "16"},
                                     {"family", "sglang"}}};
  EXPECT_EQ(workers_of(world, only(world)), want);
}

TEST(WorkersOf, PodsOfAnAddressOfVersionSixHaveBrackets) {
  World world = healthy_world();
  world.pods[4].ip = "fd00::7";
  EXPECT_EQ(workers_of(world, only(world))[0].at("url"), "http://[fd00::7]:8000");
}

TEST(WorkersOf, SelectedPodsBelongToEveryRevisionThatHasTheirPool) {
  World world = healthy_world();
  crd::Pool pool;
  pool.name = "theirs";
  pool.selector.emplace();
  pool.selector->port = 8123;
  world.stacks[0].spec.pools = {pool};
  world.stacks.push_back({"bbb", world.stacks[0].spec});
  Pod pod = worker_pod("t0", "");
  pod.component.clear();
  pod.pool = "theirs";
  world.pods = {pod};
  for (const Stack& stack : world.stacks) {
    ASSERT_EQ(workers_of(world, stack).size(), 1U) << stack.revision;
    EXPECT_EQ(workers_of(world, stack)[0].at("url"), "http://10.0.0.1:8123");
  }
}

// Two selected pods that the routers of "aaa" admit, and a newer revision "bbb" that has them too.
World world_with_lent_workers() {
  World world = healthy_world();
  world.spec.pools[0].worker_template.reset();
  world.spec.pools[0].selector.emplace();
  world.stacks = {{"aaa", world.spec}, {"bbb", world.spec}};
  world.target = "bbb";
  for (Pod& pod : world.pods) {
    if (pod.component != "worker") continue;
    pod.component.clear();
    pod.revision.clear();
  }
  return world;
}

TEST(LentWorkers, AreCountedByTheirAdmissionWhileTheyDoNotEnd) {
  World world = world_with_lent_workers();
  using Counts = std::map<Admission, std::int64_t>;
  EXPECT_EQ(lent_to(world, world.stacks[0]), (Counts{{Admission::Admitted, 2}}));
  EXPECT_EQ(lent_to(world, world.stacks[1]), (Counts{{Admission::Unknown, 2}}));
  std::find_if(world.pods.begin(), world.pods.end(), [](const Pod& pod) {
    return pod.component.empty();
  })->is_ending = true;
  EXPECT_EQ(lent_to(world, world.stacks[0]), (Counts{{Admission::Admitted, 1}}));
  EXPECT_TRUE(lent_to(healthy_world(), healthy_world().stacks[0]).empty());
}

TEST(Replaced, ReplacedOnceTheTargetHasLentWorkersAndAFrontend) {
  World world = world_with_lent_workers();
  EXPECT_FALSE(is_replaced(world, world.stacks[0]));
  for (const char* name : {"b0", "b1"}) world.routers.push_back(router_report(name, "bbb"));
  EXPECT_FALSE(is_replaced(world, world.stacks[0])) << "who would be asked?";
  Pod frontend;
  frontend.component = "frontend";
  frontend.revision = "bbb";
  frontend.is_ready = true;
  world.pods.push_back(frontend);
  EXPECT_TRUE(is_replaced(world, world.stacks[0]));
  world.routers.back().workers.erase("w1");
  EXPECT_FALSE(is_replaced(world, world.stacks[0])) << "w1 would be missed";
}

TEST(Replaced, IsARevisionWhoseLentWorkersItsRoutersRefuse) {
  World world = world_with_lent_workers();
  for (RouterReport& router : world.routers) router.workers.clear();
  EXPECT_TRUE(is_replaced(world, world.stacks[0]));
  for (RouterReport& router : world.routers) router.problem = "no answer within 2 s";
  EXPECT_FALSE(is_replaced(world, world.stacks[0])) << "silence is no refusal";
}

TEST(Admission, NeedsAMajorityOfTheWantedRouters) {
  World world = healthy_world();
  EXPECT_EQ(admission_of(world, only(world), "w0"), Admission::Admitted);
  world.routers[1].workers["w0"].is_ready = false;
  EXPECT_EQ(admission_of(world, only(world), "w0"), Admission::Refused);
  world.stacks[0].spec.router.replicas = 1;
  EXPECT_EQ(admission_of(world, only(world), "w0"), Admission::Admitted);
}

TEST(Admission, IsUnknownWhereTooFewRoutersAnswer) {
  World world = healthy_world();
  world.routers[1].problem = "no answer within 2 s";
  EXPECT_EQ(admission_of(world, only(world), "w0"), Admission::Unknown);
  EXPECT_EQ(admission_of(world, only(world), "nobody"), Admission::Refused);
}

TEST(Admission, IgnoresUnreadyRoutersAndOtherRevisions) {
  World world = healthy_world();
  world.routers[0].is_ready = false;
  EXPECT_EQ(admission_of(world, only(world), "w0"), Admission::Unknown);
  world.routers[0].is_ready = true;
  world.routers[0].revision = "bbb";
  EXPECT_EQ(admission_of(world, only(world), "w0"), Admission::Unknown);
}

TEST(Admission, EnginesWithoutReadEventsAreAdmittedWhenServing) {
  World world = healthy_world();
  for (RouterReport& router : world.routers) {
    router.workers["w0"] = {.state = "unverified", .is_ready = false, .reason = "no events"};
  }
  EXPECT_EQ(admission_of(world, only(world), "w0"), Admission::Refused);
  world.stacks[0].spec.pools[0].backend = crd::Backend::Trtllm;
  EXPECT_EQ(admission_of(world, only(world), "w0"), Admission::Admitted);
  world.stacks[0].spec.pools[0].backend = crd::Backend::Vllm;
  world.stacks[0].spec.kv.events = crd::EventsMode::Approximate;
  EXPECT_EQ(admission_of(world, only(world), "w0"), Admission::Admitted);
}

TEST(Routable, IsWhatTheGateSaidLastWhileRoutersAreAway) {
  World world = healthy_world();
  world.routers.clear();
  EXPECT_TRUE(is_routable(world, only(world), "w0"));
  world.pods[4].routable = false;
  EXPECT_FALSE(is_routable(world, only(world), "w0"));
}

TEST(Gates, FollowTheRoutersAndAreWrittenOnlyWhereTheyChange) {
  World world = healthy_world();
  EXPECT_TRUE(gates_to_set(world).empty());
  world.pods[4].routable = std::nullopt;
  world.routers[0].workers.erase("w1");
  EXPECT_EQ(gates_to_set(world), (std::map<std::string, bool>{{"w0", true}, {"w1", false}}));
}

TEST(Gates, OfPodsThatEndAreClosed) {
  World world = healthy_world();
  world.pods[5].is_ending = true;
  EXPECT_EQ(gates_to_set(world), (std::map<std::string, bool>{{"w1", false}}));
}

TEST(Gates, StayWhileNoRouterAnswersButAreNamedOnce) {
  World world = healthy_world();
  world.routers.clear();
  EXPECT_TRUE(gates_to_set(world).empty());
  world.pods[4].routable = std::nullopt;
  EXPECT_EQ(gates_to_set(world), (std::map<std::string, bool>{{"w0", false}}));
}

TEST(RevisionsOf, CountsTerminatingPodsButNotAsRoutable) {
  World world = healthy_world();
  world.pods[5].is_ending = true;
  world.pods.push_back(worker_pod("w2", "aaa"));
  world.pods.back().is_over = true;
  const auto revisions = revisions_of(world);
  ASSERT_EQ(revisions.size(), 1U);
  EXPECT_EQ(revisions[0].pools.at("gpu"), (plan::Count{.wanted = 2, .pods = 2, .routable = 1}));
}

crd::Pool selector_pool(const std::string& name) {
  crd::Pool pool;
  pool.name = name;
  pool.selector.emplace();
  return pool;
}

World world_of_two_selectors() {
  World world = healthy_world();
  crd::Pool outside;
  outside.name = "outside";
  outside.endpoints = {{.name = "e0", .url = "http://10.0.0.9:8000", .events = {}, .replay = {}}};
  world.spec.pools = {selector_pool("second"), selector_pool("first"), outside};
  world.stacks[0].spec = world.spec;
  std::erase_if(world.pods, [](const Pod& pod) { return pod.component == "worker"; });
  Pod pod = worker_pod("e0", {});
  pod.component.clear();
  pod.pool = "second";
  pod.also_in = {"first"};
  world.pods.insert(world.pods.begin(), pod);
  return world;
}

TEST(Workers, OfTwoPoolsCountOnceForTheFirst) {
  const World world = world_of_two_selectors();
  const auto workers = workers_of(world, world.stacks[0]);
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(workers[0].at("url"), "http://10.0.0.1:8000");
  EXPECT_EQ(pool_of_worker(world, world.stacks[0], "e0")->name, "second");
  EXPECT_EQ(workers_named_twice(world), std::vector<std::string>{"e0 (second, first, outside)"});
}

TEST(Workers, SharedPodsStayWithARevisionOfOnePool) {
  World world = world_of_two_selectors();
  world.stacks[0].spec.pools = {selector_pool("first")};
  EXPECT_EQ(workers_of(world, world.stacks[0]).size(), 1U);
  EXPECT_EQ(pool_of_worker(world, world.stacks[0], "e0")->name, "first");
}

}  // namespace
}  // namespace sightline::judge
