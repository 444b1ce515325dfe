// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/conditions.h"

#include <gtest/gtest.h>

#include "common/base/bytes.h"

#include "operator/judge/consistency.h"
#include "tests/unit/operator/judge/cluster_states.h"

namespace sightline::judge {
namespace {

using crd::Condition;
using crd::ConditionStatus;

Findings completed() {
  Findings findings;
  findings.plan.phase = plan::Phase::Completed;
  findings.plan.message = "aaa has 2 of 2 workers routable";
  return findings;
}

Condition of(std::string_view type, const ClusterState& cluster,
             const Findings& findings = completed()) {
  for (const Condition& condition : conditions_of(cluster, findings)) {
    if (condition.type == type) return condition;
  }
  ADD_FAILURE() << "no condition " << type;
  return {};
}

// "True AsWanted"
std::string verdict(std::string_view type, const ClusterState& cluster,
                    const Findings& findings = completed()) {
  const Condition condition = of(type, cluster, findings);
  const char* status = condition.status == ConditionStatus::True    ? "True "
                       : condition.status == ConditionStatus::False ? "False "
                                                                    : "Unknown ";
  return status + condition.reason;
}

TEST(Conditions, HealthyObjectHasGoodConditions) {
  const ClusterState cluster = healthy_world();
  EXPECT_EQ(verdict(kAccepted, cluster), "True Valid");
  EXPECT_EQ(verdict(kReady, cluster), "True AsWanted");
  EXPECT_EQ(of(kReady, cluster).message,
            "block size 16, transfer disabled, workers 2/2, routers 2");
  EXPECT_EQ(verdict(kProgressing, cluster), "False Completed");
  EXPECT_EQ(verdict(kDegraded, cluster), "False Serving");
  EXPECT_EQ(verdict(kFrontendReady, cluster), "True PodsReady");
  EXPECT_EQ(verdict(kRouterReady, cluster), "True PodsReady");
  EXPECT_EQ(verdict(kWorkersReady, cluster), "True WorkersRoutable");
  EXPECT_EQ(verdict(kMessagingReady, cluster), "True Connected");
  EXPECT_EQ(verdict(kTransferReady, cluster), "True Disabled");
  EXPECT_EQ(verdict(kIndexConsistent, cluster), "True OneBlockSize");
}

TEST(Conditions, AreAllThereFromTheFirstReconciliationOn) {
  ClusterState cluster;
  cluster.name = "new";
  EXPECT_EQ(conditions_of(cluster, {}).size(), 11U);
}

TEST(Conditions, EachSaysSomethingAlsoWhereNoSpecWasEverAccepted) {
  ClusterState cluster;
  cluster.name = "new";
  Findings findings;
  findings.spec = {.reason = "NoImage", .message = "spec.image: …"};
  for (const Condition& one : conditions_of(cluster, findings)) {
    EXPECT_NE(one.message, "") << one.type;
    EXPECT_NE(one.reason, "") << one.type;
  }
  EXPECT_EQ(verdict(kProgressing, cluster, findings), "False NothingAccepted");
  EXPECT_EQ(of(kAccepted, cluster, findings).message, "spec.image: …");
}

TEST(Conditions, RefusedSpecIsNamedAndReadyIsFalse) {
  Findings findings = completed();
  findings.spec = {.reason = "ArgumentsRefused", .message = "spec.pools[0].template.args[1]: …"};
  const ClusterState cluster = healthy_world();
  EXPECT_EQ(verdict(kAccepted, cluster, findings), "False ArgumentsRefused");
  EXPECT_EQ(of(kAccepted, cluster, findings).message,
            "spec.pools[0].template.args[1]: …. The last accepted spec keeps running");
  EXPECT_EQ(verdict(kReady, cluster, findings), "False ArgumentsRefused");
}

TEST(Conditions, MessageNamesAStuckPodWithItsReason) {
  ClusterState cluster = healthy_world();
  cluster.pods[0].is_ready = false;
  cluster.pods[0].trouble = "frontend: ImagePullBackOff: no such image";
  EXPECT_EQ(verdict(kFrontendReady, cluster), "False PodsNotReady");
  EXPECT_EQ(of(kFrontendReady, cluster).message,
            "1 of 2 are ready; f0: frontend: ImagePullBackOff: no such image");
  EXPECT_EQ(verdict(kReady, cluster), "False PodsNotReady");
  EXPECT_EQ(verdict(kDegraded, cluster), "False Serving");
}

TEST(Conditions, MessageNamesAnUnadmittedWorkerWithTheRoutersReason) {
  ClusterState cluster = healthy_world();
  for (RouterReport& router : cluster.routers) {
    router.workers["w1"] = {.state = "unverified", .is_ready = false, .reason = "replaying events"};
  }
  EXPECT_EQ(verdict(kWorkersReady, cluster), "False NotRoutable");
  EXPECT_EQ(of(kWorkersReady, cluster).message,
            "1 of 2 workers are routable; w1: replaying events");
}

TEST(Conditions, WithoutARoutableWorkerTheObjectIsDegraded) {
  ClusterState cluster = healthy_world();
  for (RouterReport& router : cluster.routers) router.workers.clear();
  EXPECT_EQ(verdict(kDegraded, cluster), "True NotServing");
}

TEST(Conditions, WorkersThatRoutersChooseByLoadAloneStillAnswer) {
  ClusterState cluster = healthy_world();
  for (RouterReport& router : cluster.routers) {
    for (auto& [name, worker] : router.workers) {
      worker = {.state = "unverified", .is_ready = false, .reason = "NATS cannot be reached"};
    }
  }
  EXPECT_EQ(verdict(kWorkersReady, cluster), "False NotRoutable");
  EXPECT_EQ(verdict(kDegraded, cluster), "True WithoutOverlap");
  EXPECT_EQ(of(kDegraded, cluster).message,
            "routers choose workers by load alone: 0 of 2 workers are routable; w0: NATS cannot be "
            "reached");

  for (RouterReport& router : cluster.routers) {
    for (auto& [name, worker] : router.workers) worker.state = "down";
  }
  EXPECT_EQ(verdict(kDegraded, cluster), "True NotServing");
}

TEST(Conditions, StuckPodDoesNotHideWhyOthersAreUnroutable) {
  ClusterState cluster = healthy_world();
  for (RouterReport& router : cluster.routers) {
    router.workers["w1"] = {.state = "unverified", .is_ready = false, .reason = "replaying events"};
  }
  Pod surge = worker_pod("w3", "aaa");
  surge.is_ready = false;
  surge.trouble = "ErrImageNeverPull";
  cluster.pods.push_back(surge);
  EXPECT_EQ(verdict(kWorkersReady, cluster), "False PodsNotReady");
  EXPECT_EQ(of(kWorkersReady, cluster).message,
            "1 of 2 workers are routable; w3: ErrImageNeverPull; w1: replaying events");
}

TEST(Conditions, OtherBlockSizesAreNamedAndOutOfTheIndex) {
  ClusterState cluster = healthy_world();
  cluster.routers[0].workers["w1"] = {
      .state = "excluded", .is_ready = false, .reason = "…", .block_size = 32};
  EXPECT_EQ(verdict(kIndexConsistent, cluster), "False BlockSizeMismatch");
  EXPECT_NE(of(kIndexConsistent, cluster).message.find("w1 (32 tokens, revision aaa has 16)"),
            std::string::npos);
  EXPECT_EQ(verdict(kDegraded, cluster), "True BlockSizeMismatch");
  EXPECT_EQ(block_sizes_of(cluster, "gpu"), (std::set<std::int64_t>{32}));
}

TEST(Conditions, EachRevisionIsJudgedByItsOwnBlockSize) {
  ClusterState cluster = healthy_world();
  cluster.stacks.push_back({"bbb", cluster.spec});
  cluster.stacks.back().spec.kv.block_size = 32;
  cluster.routers.push_back(router_report("r9", "bbb"));
  for (auto& [name, report] : cluster.routers[0].workers) report.block_size = 16;
  for (auto& [name, report] : cluster.routers[2].workers) report.block_size = 32;
  EXPECT_EQ(verdict(kIndexConsistent, cluster), "True OneBlockSize");
  cluster.routers[2].workers["w1"].block_size = 16;
  EXPECT_EQ(verdict(kIndexConsistent, cluster), "False BlockSizeMismatch");
}

TEST(Conditions, NamesMembersWithOtherFilesButNotOfOtherRevisions) {
  ClusterState cluster = healthy_world();
  cluster.routers[0].misfits = {
      {.name = "f7", .difference = "revision", .reason = "its revision is bbb"}};
  EXPECT_EQ(verdict(kIndexConsistent, cluster), "True OneBlockSize");
  cluster.routers[0].misfits.push_back(
      {.name = "f8", .difference = "model", .reason = "its model digest is 1, not 2"});
  EXPECT_EQ(verdict(kIndexConsistent, cluster), "False ModelMismatch");
  EXPECT_NE(of(kIndexConsistent, cluster).message.find("f8 (its model digest is 1, not 2)"),
            std::string::npos);
  cluster.routers[0].misfits.back().difference = "identity_key";
  EXPECT_EQ(verdict(kIndexConsistent, cluster), "False MemberMismatch");
}

TEST(Conditions, WithoutAnAnswerTheIndexIsUnknown) {
  ClusterState cluster = healthy_world();
  for (RouterReport& router : cluster.routers) router.problem = "no answer";
  EXPECT_EQ(verdict(kIndexConsistent, cluster), "Unknown NoRouterAnswers");
  EXPECT_EQ(verdict(kMessagingReady, cluster), "Unknown NoRouterAnswers");
}

TEST(Conditions, WhatIsRenderedAndNotUsedYetIsSaid) {
  ClusterState cluster = healthy_world();
  cluster.spec.transfer.mode = crd::TransferMode::Shm;
  EXPECT_EQ(verdict(kTransferReady, cluster), "False NotImplemented");
  cluster.spec.pools[0].backend = crd::Backend::Trtllm;
  EXPECT_EQ(verdict(kIndexConsistent, cluster), "False NotImplemented");
  EXPECT_EQ(verdict(kDegraded, cluster), "False Serving");
}

TEST(Conditions, UpdatingMessageNamesAStuckPod) {
  ClusterState cluster = healthy_world();
  cluster.pods.push_back(cluster.pods.back());
  cluster.pods.back().name = "f2";
  cluster.pods.back().is_ready = false;
  cluster.pods.back().trouble = "frontend: ErrImageNeverPull";
  Findings findings = completed();
  findings.plan.phase = plan::Phase::Moving;
  findings.plan.message = "shop-aaa-frontend has 1 of 2 pods with its latest template";
  EXPECT_EQ(verdict(kFrontendReady, cluster, findings), "True PodsReady");
  EXPECT_EQ(verdict(kReady, cluster, findings), "False Updating");
  EXPECT_EQ(of(kReady, cluster, findings).message,
            "shop-aaa-frontend has 1 of 2 pods with its latest template; "
            "f2: frontend: ErrImageNeverPull");
}

TEST(Conditions, RollOutWithoutProgressIsStuck) {
  const ClusterState cluster = healthy_world();
  Findings findings = completed();
  findings.plan.phase = plan::Phase::Moving;
  EXPECT_EQ(verdict(kProgressing, cluster, findings), "True RollingOut");
  EXPECT_EQ(verdict(kReady, cluster, findings), "False Updating");
  findings.is_stuck = true;
  EXPECT_EQ(verdict(kProgressing, cluster, findings), "False ProgressDeadlineExceeded");
  EXPECT_EQ(verdict(kDegraded, cluster, findings), "True ProgressDeadlineExceeded");
}

TEST(Conditions, OfASuspendedObjectSaySo) {
  ClusterState cluster = healthy_world();
  cluster.spec.suspend = true;
  Findings findings = completed();
  findings.plan.phase = plan::Phase::Suspended;
  for (const std::string_view type :
       {kProgressing, kFrontendReady, kRouterReady, kWorkersReady, kReady, kDegraded}) {
    EXPECT_EQ(verdict(type, cluster, findings), "False Suspended") << type;
  }
}

TEST(Conditions, NatsDependsOnItsPodsAndTheRoutersConnections) {
  ClusterState cluster = healthy_world();
  cluster.spec.nats.managed.emplace();
  cluster.spec.nats.managed->replicas = 3;
  cluster.nats_ready = 2;
  EXPECT_EQ(verdict(kMessagingReady, cluster), "False PodsNotReady");
  cluster.nats_ready = 3;
  cluster.routers[1].nats_trouble = "Authorization Violation";
  EXPECT_EQ(verdict(kMessagingReady, cluster), "False NotConnected");
  EXPECT_EQ(of(kMessagingReady, cluster).message, "r1: NATS Authorization Violation");
}

TEST(Conditions, AnObjectThatCannotBeWrittenIsNamed) {
  Findings findings = completed();
  findings.writing = {.reason = "WriteFailed", .message = "Service/shop: exceeded quota"};
  EXPECT_EQ(verdict(kReady, healthy_world(), findings), "False WriteFailed");
}

TEST(Merged, CutsLongMessagesBelowTheApiServersLimit) {
  ClusterState cluster = healthy_world();
  std::string endless;
  for (int i = 0; i < 100'000; ++i) endless += "\xC3\xA4";
  for (RouterReport& router : cluster.routers) {
    router.workers["w0"] = {.state = "replaying", .is_ready = false, .reason = endless};
  }
  for (const crd::Condition& one : merged({}, conditions_of(cluster, {}), 1, {})) {
    EXPECT_LE(one.message.size(), kMessageBytesMax) << one.type;
    EXPECT_TRUE(is_utf8(one.message)) << one.type;
  }
}

TEST(WithTrouble, WithoutAWordItsReasonIsSaid) {
  const auto conditions = with_trouble({}, {"ReadFailed", ""}, 1, {});
  EXPECT_EQ(conditions.at(0).message, "ReadFailed");
}

TEST(WithTrouble, TheRestStaysAsItWasSaid) {
  const WallTime then(std::chrono::hours(1));
  const WallTime later(std::chrono::hours(2));
  const auto before = merged({}, conditions_of(healthy_world(), {}), 1, then);
  const auto after = with_trouble(before, {"ReadFailed", "no key"}, 2, later);
  ASSERT_EQ(after.size(), before.size());
  EXPECT_EQ(after[1].type, kReady) << "in its place, or it would be written again and again";
  for (const crd::Condition& one : after) {
    const bool is_ready = one.type == kReady;
    EXPECT_EQ(one.reason == "ReadFailed", is_ready) << one.type;
    EXPECT_EQ(one.observed_generation, is_ready ? 2 : 1) << one.type;
  }
  EXPECT_EQ(with_trouble({}, {"ReadFailed", "no key"}, 1, then).size(), 1U);
  const auto again = with_trouble(after, {"ReadFailed", "no key"}, 2, later);
  EXPECT_EQ(again, after);
}

TEST(Merged, ConditionsKeepTheirTimeUntilTheirStatusChanges) {
  const WallTime first{std::chrono::hours(1)};
  const WallTime second{std::chrono::hours(2)};
  const auto before = merged({},
                             {{.type = "A", .status = ConditionStatus::True, .reason = "One"},
                              {.type = "B", .status = ConditionStatus::True, .reason = "One"}},
                             1, first);
  const auto after = merged(before,
                            {{.type = "A", .status = ConditionStatus::True, .reason = "Two"},
                             {.type = "B", .status = ConditionStatus::False, .reason = "One"}},
                            2, second);
  EXPECT_EQ(after[0].last_transition_time, "1970-01-01T01:00:00Z");
  EXPECT_EQ(after[0].reason, "Two");
  EXPECT_EQ(after[0].observed_generation, 2);
  EXPECT_EQ(after[1].last_transition_time, "1970-01-01T02:00:00Z");
}

TEST(Conditions, CrashingRouterPrecedesMissingAnswers) {
  ClusterState cluster = healthy_world();
  cluster.routers = {{.pod = "r0", .revision = "aaa", .problem = "refused"},
                     {.pod = "r1", .revision = "aaa", .problem = "refused"}};
  for (Pod& pod : cluster.pods) {
    if (pod.component != "router") continue;
    pod.is_ready = false;
    pod.trouble = "router: CrashLoopBackOff (it ended: Error, exit code 2: no such flag)";
  }
  EXPECT_EQ(verdict(kMessagingReady, cluster), "Unknown NoRouterAnswers");
  EXPECT_EQ(verdict(kReady, cluster), "False PodsNotReady");
  EXPECT_EQ(of(kReady, cluster).message,
            "RouterReady: 0 of 2 are ready; r0: router: CrashLoopBackOff (it ended: Error, exit "
            "code 2: no such flag)");
}

TEST(Conditions, WorkersThatAreNotFoundServeAsTheirRoutersSay) {
  ClusterState cluster = healthy_world();
  std::erase_if(cluster.pods, [](const Pod& pod) { return pod.component == "worker"; });
  std::erase_if(cluster.deployments,
                [](const Deployment& one) { return one.component == "worker"; });
  EXPECT_EQ(verdict(kWorkersReady, cluster), "False NotRoutable");
  EXPECT_EQ(verdict(kDegraded, cluster), "False Serving");
  for (RouterReport& router : cluster.routers) router.workers.clear();
  EXPECT_EQ(verdict(kDegraded, cluster), "True NotServing");
}

TEST(Conditions, FailedWritePrecedesItsConsequences) {
  ClusterState cluster = healthy_world();
  std::erase_if(cluster.pods, [](const Pod& pod) { return pod.component == "router"; });
  cluster.routers.clear();
  std::erase_if(cluster.deployments,
                [](const Deployment& one) { return one.component == "router"; });
  EXPECT_EQ(verdict(kReady, cluster), "False PodsNotReady");
  EXPECT_EQ(of(kRouterReady, cluster).message, "no Deployment of this component requests pods yet");
  Findings findings = completed();
  findings.seeing = {.reason = "WorkersNotFound", .message = "none"};
  EXPECT_EQ(verdict(kReady, cluster, findings), "False WorkersNotFound");
  findings.writing = {.reason = "NameTaken", .message = "Service/shop-aaa-router: taken"};
  EXPECT_EQ(verdict(kReady, cluster, findings), "False NameTaken");
  EXPECT_EQ(of(kReady, cluster, findings).message, "Service/shop-aaa-router: taken");
  EXPECT_EQ(of(kDegraded, cluster, findings).message,
            "no request can be answered: Service/shop-aaa-router: taken");
  findings.spec = {.reason = "SecretMissing", .message = "hub"};
  EXPECT_EQ(verdict(kReady, cluster, findings), "False SecretMissing");
}

TEST(Conditions, NameTheNatsPodThatDoesNotRun) {
  ClusterState cluster = healthy_world();
  cluster.nats_ready = 0;
  EXPECT_EQ(of(kMessagingReady, cluster).message,
            "0 of 1 NATS servers are ready; StatefulSet shop-nats has no pods: see its events");
  Pod nats = worker_pod("shop-nats-0", {});
  nats.component = "nats";
  nats.trouble = "nats: ErrImagePull";
  cluster.pods.push_back(nats);
  EXPECT_EQ(of(kMessagingReady, cluster).message,
            "0 of 1 NATS servers are ready; shop-nats-0: nats: ErrImagePull");
}

TEST(Conditions, SayThatAWorkerIsInTwoPools) {
  ClusterState cluster = healthy_world();
  crd::Pool outside;
  outside.name = "outside";
  outside.endpoints = {{.name = "w0", .url = "http://10.0.0.1:8000", .events = {}, .replay = {}}};
  cluster.spec.pools.push_back(outside);
  cluster.stacks[0].spec = cluster.spec;
  EXPECT_EQ(verdict(kPoolsDistinct, cluster), "False WorkerInTwoPools");
  EXPECT_NE(of(kPoolsDistinct, cluster).message.find("w0 (gpu, outside)"), std::string::npos);
  EXPECT_EQ(verdict(kPoolsDistinct, healthy_world()), "True EachInOnePool");
}

TEST(WithTrouble, DropsConditionsOfOtherWriters) {
  const std::vector<Condition> before = {{.type = "Accepted", .reason = "Valid"},
                                         {.type = "Theirs", .reason = "Foo"}};
  const auto now = with_trouble(before, {.reason = "ReadFailed", .message = "no"}, 1, {});
  ASSERT_EQ(now.size(), 2U);
  EXPECT_EQ(now[0].type, "Accepted");
  EXPECT_EQ(now[1].type, "Ready");
}

}  // namespace
}  // namespace sightline::judge
