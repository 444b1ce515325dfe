// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/reconciler.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "common/base/rng.h"

#include "operator/desired/object_names.h"
#include "operator/kube/object/metadata.h"
#include "operator/owned/kinds.h"
#include "tests/unit/operator/reconcile/trial.h"

namespace sightline::reconcile {
namespace {

using object::Key;
using object::Value;

std::set<std::string> revisions(const Trial& trial) {
  std::set<std::string> revisions;
  for (const Value& pod : trial.cluster.pods("worker")) {
    revisions.emplace(object::label_of(pod, desired::kRevisionLabel));
  }
  return revisions;
}

std::vector<fakes::Call> writes_after(const Trial& trial, std::size_t before) {
  std::vector<fakes::Call> writes = trial.server.writes();
  writes.erase(writes.begin(), writes.begin() + static_cast<std::ptrdiff_t>(before));
  return writes;
}

TEST(Reconciler, MakesTheSmallestObjectReady) {
  Trial trial;
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  EXPECT_EQ(trial.status().workers, "2/2");
  EXPECT_EQ(trial.status().router, (crd::ReadyCount{.desired = 2, .ready = 2}));
  EXPECT_EQ(trial.status().frontend, (crd::ReadyCount{.desired = 2, .ready = 2}));
  EXPECT_EQ(trial.status().rollout.phase, crd::RolloutPhase::Completed);
  for (const Value& pod : trial.cluster.pods("router")) {
    const auto settings = trial.cluster.settings(object::key_of(pod).name);
    EXPECT_EQ(settings.at("routing.policy"), "kv");
  }
}

TEST(Reconciler, WritesNothingInSteadyState) {
  Trial trial;
  trial.settle();
  const std::size_t before = trial.server.writes().size();
  const std::size_t pushes = trial.cluster.puts("/v1/workers") + trial.cluster.puts("/v1/settings");
  for (int i = 0; i < 20; ++i) trial.tick();
  EXPECT_TRUE(writes_after(trial, before).empty());
  EXPECT_EQ(trial.cluster.puts("/v1/workers") + trial.cluster.puts("/v1/settings"), pushes);
}

TEST(Reconciler, ChangesNothingWhenAnotherOneTakesOver) {
  Trial trial;
  trial.settle();
  const std::uint64_t before = trial.server.version();
  trial.restart_operator();
  trial.settle();
  EXPECT_EQ(trial.server.version(), before);
}

TEST(Reconciler, RestoresForeignChanges) {
  Trial trial;
  trial.settle();
  Value deployment = trial.server.objects(owned::deployments_resource()).front();
  const Value wanted = deployment.at({"spec", "template"});
  deployment.set({"spec", "template", "spec", "terminationGracePeriodSeconds"}, 1);
  trial.server.put(owned::deployments_resource(), deployment);
  trial.settle();
  EXPECT_EQ(trial.server.find(owned::deployments_resource(), object::key_of(deployment))
                ->at({"spec", "template"}),
            wanted);
}

TEST(Reconciler, RecreatesDeletedObjects) {
  Trial trial;
  trial.settle();
  std::vector<std::pair<object::Resource, Key>> all;
  for (const object::Resource& resource : owned::rendered_resources()) {
    for (const Value& object : trial.server.objects(resource)) {
      all.emplace_back(resource, object::key_of(object));
    }
  }
  ASSERT_GT(all.size(), 10U);
  for (const auto& [resource, key] : all) {
    ASSERT_TRUE(trial.server.remove(resource, key, {}).ok());
    trial.server.collect_garbage();
    trial.settle();
    EXPECT_TRUE(trial.server.find(resource, key)) << resource.kind << " " << key.name;
    if (HasFailure()) return;
  }
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
}

TEST(Reconciler, NewBlockSizeRunsBesideTheOldUntilItServes) {
  Trial trial;
  trial.settle();
  const std::set<std::string> old = revisions(trial);
  trial.always = [&] {
    EXPECT_GE(trial.cluster.routable(), 2U) << "no worker may be missed";
    for (const Value& pod : trial.cluster.pods("frontend", *old.begin())) {
      if (object::is_being_deleted(pod)) continue;
      EXPECT_TRUE(trial.cluster.has_routable(*old.begin())) << "a frontend without a worker";
    }
  };
  trial.change([](Value& spec) { spec.set({"kv", "blockSize"}, 32); });
  std::size_t most = 0;
  for (int i = 0; i < 40; ++i) {
    trial.tick();
    most = std::max(most, revisions(trial).size());
    EXPECT_LE(trial.cluster.pods("worker").size(), 3U + 1U) << "one more than wanted, and one ends";
  }
  trial.settle();
  EXPECT_EQ(most, 2U);
  ASSERT_EQ(revisions(trial).size(), 1U);
  EXPECT_NE(revisions(trial), old);
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  EXPECT_EQ(trial.status().revisions.size(), 1U);
  EXPECT_EQ(trial.status().revisions[0].block_size, 32);
  for (const object::Resource& resource : owned::rendered_resources()) {
    for (const std::string& name : trial.names(resource)) {
      EXPECT_EQ(name.find(*old.begin()), std::string::npos) << resource.kind << " " << name;
    }
  }
}

TEST(Reconciler, OneFrontendServesAtAllTimes) {
  for (const std::string strategy : {"Rolling", "BlueGreen"}) {
    Value spec = Trial::smallest_spec();
    spec.set({"frontend", "replicas"}, 1);
    spec.set({"rollout", "strategy"}, strategy);
    Value pool = spec["pools"].items()[0];
    pool.member("replicas") = 1;
    spec.member("pools") = Value::array({pool});
    Trial trial(spec);
    trial.settle();
    trial.always = [&] {
      const auto frontends = trial.cluster.pods("frontend");
      EXPECT_TRUE(std::any_of(frontends.begin(), frontends.end(), FakeCluster::serves)) << strategy;
    };
    trial.change([](Value& now) { now.set({"kv", "blockSize"}, 32); });
    trial.settle();
    EXPECT_EQ(revisions(trial).size(), 1U);
    EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  }
}

TEST(Reconciler, RevertedChangeReturnsToTheOldRevision) {
  Trial trial;
  trial.settle();
  const std::set<std::string> old = revisions(trial);
  trial.always = [&] { EXPECT_GE(trial.cluster.routable(), 2U); };
  trial.change([](Value& spec) { spec.set({"kv", "blockSize"}, 32); });
  for (int i = 0; i < 200 && revisions(trial).size() < 2; ++i) trial.tick();
  ASSERT_EQ(revisions(trial).size(), 2U);
  trial.change([](Value& spec) { spec.erase({"kv", "blockSize"}); });
  trial.settle();
  EXPECT_EQ(revisions(trial), old);
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
}

Value spec_with_engines_of_others() {
  Value spec = Trial::smallest_spec();
  auto pool = Value::parse(R"({"name": "theirs", "backend": "vllm", "role": "aggregated",
    "selector": {"matchLabels": {"app": "vllm"}, "port": 8000}})");
  spec.member("pools") = Value::array({*pool});
  return spec;
}

TEST(Reconciler, NewRevisionOverForeignEnginesServesBeforeTheOldGoes) {
  Trial trial(spec_with_engines_of_others());
  trial.cluster.add_foreign("t0", "vllm");
  trial.cluster.add_foreign("t1", "vllm");
  trial.settle();
  ASSERT_EQ(trial.status().workers, "2/2");
  ASSERT_EQ(trial.condition("Ready"), "True AsWanted");
  const std::string old = trial.status().current_revision;
  trial.always = [&] { EXPECT_GE(trial.cluster.serving(), 1U); };
  trial.change([](Value& spec) { spec.set({"model", "revision"}, "second"); });
  trial.tick();
  EXPECT_EQ(trial.condition("Progressing"), "True RollingOut");
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  ASSERT_EQ(trial.status().revisions.size(), 1U);
  EXPECT_NE(trial.status().revisions[0].name, old);
  EXPECT_EQ(trial.cluster.pods("frontend").size(), 2U);
  EXPECT_TRUE(trial.cluster.pods("router", old).empty());
}

TEST(Reconciler, AgentsPodShowsItsChangedListToTheKubelet) {
  Trial trial(spec_with_engines_of_others());
  const auto shown = [&] {
    return std::string(
        object::annotation_of(trial.cluster.pods("agent").at(0), desired::kListAnnotation));
  };
  std::set<std::string> lists;
  for (const std::string engine : {"t0", "t1", "t2"}) {
    trial.cluster.add_foreign(engine, "vllm");
    trial.settle();
    lists.insert(shown());
  }
  EXPECT_EQ(lists.size(), 3U);
  EXPECT_FALSE(lists.contains(""));
}

TEST(Reconciler, RevisionWithoutAdmittedEnginesReplacesNoOther) {
  Trial trial(spec_with_engines_of_others());
  trial.cluster.add_foreign("t0", "vllm");
  trial.cluster.add_foreign("t1", "vllm");
  trial.settle();
  const std::string old = trial.status().current_revision;
  const auto serves = [&] { return !trial.cluster.pods("frontend", old).empty(); };
  trial.always = [&] { EXPECT_TRUE(serves()); };
  trial.change([](Value& spec) { spec.set({"model", "revision"}, "second"); });
  for (int i = 0; i < 30; ++i) {
    for (const Value& pod : trial.cluster.pods("router")) {
      if (object::label_of(pod, desired::kRevisionLabel) == old) continue;
      trial.cluster.silence(object::key_of(pod).name, true);
    }
    trial.tick();
  }
  EXPECT_EQ(trial.condition("Ready").substr(0, 5), "False");
}

TEST(Reconciler, OldRevisionGoesWhenForeignEnginesAreGone) {
  Trial trial(spec_with_engines_of_others());
  trial.settle();
  const std::string old = trial.status().current_revision;
  trial.change([](Value& spec) { spec.set({"model", "revision"}, "second"); });
  trial.settle();
  EXPECT_TRUE(trial.cluster.pods("frontend", old).empty());
  EXPECT_TRUE(trial.cluster.pods("router", old).empty());
}

TEST(Reconciler, NeverRunsMoreThanTwoRevisionsWithWorkers) {
  Trial trial;
  trial.settle();
  trial.always = [&] {
    EXPECT_LE(revisions(trial).size(), 2U);
    EXPECT_GE(trial.cluster.routable(), 2U);
  };
  Rng rng(7);
  for (int i = 0; i < 12; ++i) {
    trial.change([&](Value& spec) {
      spec.set({"kv", "blockSize"}, static_cast<std::int64_t>(16 + rng.below(4)));
    });
    for (std::uint64_t n = rng.below(6); n > 0; --n) trial.tick();
  }
  trial.settle();
  EXPECT_EQ(revisions(trial).size(), 1U);
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
}

TEST(Reconciler, WeightsGoToRunningRoutersAndRestartNothing) {
  Trial trial;
  trial.settle();
  std::vector<std::string> pods = trial.names(owned::pods_resource());
  trial.change([](Value& spec) {
    spec.set({"router", "weights", "overlapCredit"}, "0.5");
    spec.set({"router", "policy"}, "round-robin");
  });
  trial.settle();
  EXPECT_EQ(trial.names(owned::pods_resource()), pods);
  for (const std::string component : {"router", "frontend"}) {
    for (const Value& pod : trial.cluster.pods(component)) {
      const auto settings = trial.cluster.settings(object::key_of(pod).name);
      EXPECT_EQ(settings.at("routing.policy"), "round-robin");
      EXPECT_EQ(settings.at("routing.overlap_credit"), "0.5");
    }
  }
}

TEST(Reconciler, IsUpdatingFromTheFirstReconciliationUntilPodsAreReplaced) {
  Trial trial;
  trial.settle();
  trial.cluster.stop_deployments(true);
  trial.change([](Value& spec) {
    spec.set({"router", "podTemplate", "metadata", "labels", "team"}, "a");
  });
  for (int i = 0; i < 3; ++i) {
    trial.tick();
    EXPECT_EQ(trial.condition("Ready"), "False Updating") << i;
    EXPECT_EQ(trial.condition("Progressing"), "True RollingOut") << i;
  }
  trial.cluster.stop_deployments(false);
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
}

TEST(Reconciler, ARestartedRouterGetsItsListAndSettingsAgain) {
  Trial trial;
  trial.settle();
  const std::string pod = object::key_of(trial.cluster.pods("router")[0]).name;
  trial.cluster.restart_router(pod);
  trial.settle();
  EXPECT_FALSE(trial.cluster.settings(pod).empty());
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
}

TEST(Reconciler, WorkersStayRoutableWhileRoutersAreSilent) {
  Trial trial;
  trial.settle();
  for (const Value& pod : trial.cluster.pods("router")) {
    trial.cluster.silence(object::key_of(pod).name, true);
  }
  for (int i = 0; i < 5; ++i) trial.tick();
  EXPECT_EQ(trial.cluster.routable(), 2U);
  EXPECT_EQ(trial.condition("IndexConsistent"), "Unknown NoRouterAnswers");
}

TEST(Reconciler, WorkerOfAnotherBlockSizeIsNamedAndUnroutable) {
  Trial trial;
  trial.settle();
  const std::string worker = object::key_of(trial.cluster.pods("worker")[0]).name;
  trial.cluster.lie(worker, 64);
  for (int i = 0; i < 3; ++i) trial.tick();
  EXPECT_EQ(trial.condition("IndexConsistent"), "False BlockSizeMismatch");
  EXPECT_EQ(trial.cluster.routable(), 1U);
  EXPECT_EQ(trial.status().pools[0].reported_block_sizes, (std::vector<std::int64_t>{64}));
}

TEST(Reconciler, ARefusedSpecKeepsTheAcceptedOneRunning) {
  Trial trial;
  trial.settle();
  const std::vector<std::string> pods = trial.names(owned::pods_resource());
  trial.change([](Value& spec) {
    spec.set({"kv", "blockSize"}, 32);
    spec.set({"router", "podTemplate", "spec", "restartPolicy"}, "Never");
  });
  trial.settle();
  EXPECT_EQ(trial.condition("Accepted"), "False PodTemplateRefused");
  EXPECT_EQ(trial.names(owned::pods_resource()), pods);
  trial.change([](Value& spec) { spec.erase({"router", "podTemplate"}); });
  trial.settle();
  EXPECT_EQ(trial.condition("Accepted"), "True Valid");
  EXPECT_EQ(trial.status().revisions[0].block_size, 32);
}

TEST(Reconciler, SuspendsToNothingAndResumes) {
  Trial trial;
  trial.settle();
  trial.change([](Value& spec) { spec.set({"suspend"}, true); });
  trial.settle();
  EXPECT_TRUE(trial.names(owned::pods_resource()).empty());
  EXPECT_EQ(trial.condition("Ready"), "False Suspended");
  trial.change([](Value& spec) { spec.set({"suspend"}, false); });
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
}

TEST(Reconciler, LeavesNothingWhenTheObjectIsDeleted) {
  Trial trial;
  trial.settle();
  trial.remove();
  trial.cluster.step();
  EXPECT_TRUE(trial.names(owned::pods_resource()).empty());
  for (const object::Resource& resource : owned::rendered_resources()) {
    EXPECT_TRUE(trial.names(resource).empty()) << resource.kind;
  }
  EXPECT_TRUE(trial.names(owned::secrets_resource()).empty());
  EXPECT_TRUE(trial.reconcile().ok());
}

TEST(Reconciler, LeavesForeignObjectsAlone) {
  Trial trial;
  Value service = Value::object();
  service.set({"metadata", "name"}, "shop");
  service.set({"metadata", "namespace"}, "prod");
  service.set({"spec", "type"}, "ExternalName");
  const object::Resource* services = owned::rendered_of("Service");
  trial.server.put(*services, service);
  for (int i = 0; i < 5; ++i) {
    static_cast<void>(trial.reconcile());
    trial.cluster.step();
  }
  EXPECT_EQ(trial.condition("Ready").substr(0, 5), "False");
  EXPECT_EQ(trial.server.find(*services, {"prod", "shop"})->at({"spec", "type"}).text(),
            "ExternalName");
}

TEST(Reconciler, CountsOnlyPodsOfItsControllers) {
  Trial trial;
  trial.settle();
  Value stranger = trial.cluster.pods("worker")[0];
  stranger.set({"metadata", "name"}, "stranger");
  stranger.erase({"metadata", "uid"});
  stranger.erase({"metadata", "ownerReferences"});
  stranger.erase({"metadata", "finalizers"});
  trial.server.put(owned::pods_resource(), stranger);
  for (int i = 0; i < 5; ++i) trial.tick();
  EXPECT_EQ(trial.status().workers, "2/2");
  for (const fakes::Call& call : trial.server.writes()) EXPECT_NE(call.key.name, "stranger");
}

TEST(Reconciler, ScalesAPoolAsItsScaleObjectSays) {
  Value spec = Trial::smallest_spec();
  auto pool = Value::parse(R"({"name": "gpu", "backend": "simulator", "role": "aggregated",
    "autoscaling": {"minReplicas": 1, "maxReplicas": 4}, "template": {}})");
  spec.member("pools") = Value::array({*pool});
  Trial trial(spec);
  trial.settle();
  EXPECT_EQ(trial.status().workers, "1/1");
  const auto scales = trial.server.objects(owned::scales_resource());
  ASSERT_EQ(scales.size(), 1U);
  Value more = Value::object();
  more.set({"spec", "replicas"}, 3);
  ASSERT_TRUE(
      trial.server.merge_patch(owned::scales_resource(), object::key_of(scales[0]), more, {}).ok());
  trial.settle();
  EXPECT_EQ(trial.status().workers, "3/3");
}

}  // namespace
}  // namespace sightline::reconcile
