// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/judge/observe.h"

#include <gtest/gtest.h>

namespace sightline::judge {
namespace {

using object::Value;

Value parsed(const std::string& json) {
  auto value = Value::parse(json);
  EXPECT_TRUE(value.ok()) << json;
  return value.ok() ? *value : Value();
}

TEST(PodOf, ReadsStateGateAndTrouble) {
  const Pod pod = pod_of(parsed(R"({
    "metadata": {"name": "w0", "uid": "u", "labels": {"sightline.dev/revision": "aaa",
      "sightline.dev/pool": "gpu", "app.kubernetes.io/component": "worker"}},
    "status": {"phase": "Running", "podIP": "10.1.2.3",
      "conditions": [{"type": "Ready", "status": "False"},
                     {"type": "sightline.dev/routable", "status": "True"}],
      "containerStatuses": [{"name": "worker", "state": {"waiting":
        {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
        "lastState": {"terminated": {"reason": "OOMKilled"}}}]}})"));
  Pod want;
  want.name = "w0";
  want.uid = "u";
  want.ip = "10.1.2.3";
  want.component = "worker";
  want.revision = "aaa";
  want.pool = "gpu";
  want.routable = true;
  want.trouble = "worker: CrashLoopBackOff (it ended: OOMKilled): back-off 10s";
  EXPECT_EQ(pod, want);
}

TEST(PodOf, OnlyUnschedulablePendingPodsHaveTrouble) {
  EXPECT_EQ(pod_of(parsed(R"({"status": {"containerStatuses": [{"name": "worker", "state":
    {"waiting": {"reason": "ContainerCreating"}}}]}})"))
                .trouble,
            "");
  EXPECT_EQ(pod_of(parsed(R"({"status": {"conditions": [{"type": "PodScheduled", "status": "False",
    "reason": "Unschedulable", "message": "0/3 nodes have nvidia.com/gpu"}]}})"))
                .trouble,
            "Unschedulable: 0/3 nodes have nvidia.com/gpu");
}

TEST(PodOf, SaysWhatAProgramSaidLast) {
  const auto trouble = [](const std::string& state) {
    return pod_of(
               parsed(R"({"status": {"containerStatuses": [{"name": "router", )" + state + "}]}}"))
        .trouble;
  };
  const std::string ended =
      R"("terminated": {"exitCode": 2, "reason": "Error", "message": "one\ntwo: no such file\n"})";
  EXPECT_EQ(trouble(R"("state": {)" + ended + "}"),
            "router: it ended: Error, exit code 2: one two: no such file");
  EXPECT_EQ(trouble(R"("state": {"running": {}}, "lastState": {)" + ended + "}"),
            "router: it ended: Error, exit code 2: one two: no such file");
  EXPECT_EQ(trouble(R"("ready": true, "state": {"running": {}}, "lastState": {)" + ended + "}"),
            "");
  EXPECT_EQ(trouble(R"("state": {"terminated": {"exitCode": 0, "reason": "Completed"}})"), "");
  const std::string long_words = trouble(R"("state": {"terminated": {"exitCode": 1, "message": ")" +
                                         std::string(3000, 'x') + R"( the end"}})");
  EXPECT_LT(long_words.size(), 600U);
  EXPECT_TRUE(long_words.ends_with(" the end"));
}

TEST(PodOf, EndsAndIsOver) {
  EXPECT_TRUE(
      pod_of(parsed(R"({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})")).is_ending);
  EXPECT_TRUE(pod_of(parsed(R"({"status": {"phase": "Failed"}})")).is_over);
  EXPECT_FALSE(pod_of(parsed(R"({"status": {"phase": "Running"}})")).is_over);
}

TEST(DeploymentOf, ReadsCountsAndWhyItMakesNoProgress) {
  const Deployment deployment = deployment_of(parsed(R"({
    "metadata": {"name": "d", "generation": 4},
    "spec": {"replicas": 3},
    "status": {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 1, "readyReplicas": 1,
      "conditions": [{"type": "Progressing", "status": "True"},
        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
         "message": "exceeded quota"}]}})"));
  EXPECT_EQ(deployment.wanted, 3);
  EXPECT_EQ(deployment.pods, 2);
  EXPECT_EQ(deployment.updated, 1);
  EXPECT_EQ(deployment.ready, 1);
  EXPECT_FALSE(deployment.is_observed);
  EXPECT_EQ(deployment.trouble, "FailedCreate: exceeded quota");
}

TEST(DeploymentOf, IsKnownByItsSelectorWhichNoPolicyChanges) {
  const Deployment deployment = deployment_of(parsed(R"({
    "metadata": {"labels": {"sightline.dev/pool": "theirs", "app.kubernetes.io/component": "x"}},
    "spec": {"selector": {"matchLabels": {"sightline.dev/router": "shop",
      "sightline.dev/revision": "aaa", "sightline.dev/pool": "gpu",
      "app.kubernetes.io/component": "worker"}}}})"));
  EXPECT_EQ(deployment.component, "worker");
  EXPECT_EQ(deployment.revision, "aaa");
  EXPECT_EQ(deployment.pool, "gpu");
}

TEST(ReportOf, ARouterHasItsWorkersListSettingsAndMisfits) {
  Pod router;
  router.name = "r0";
  router.revision = "aaa";
  router.is_ready = true;
  RouterAnswers answers;
  answers.workers = parsed(R"([{"name": "w0", "state": "excluded", "ready": false,
    "reason": "its block size is 32", "block_size": 32, "block_size_configured": 16}])");
  answers.list = parsed(R"({"source": "push", "generation": 12,
    "pushed": {"revision": "aaa", "generation": 12, "workers": [{"name": "w0"}]}})");
  answers.settings = parsed(R"([{"name": "routing.policy", "value": "kv", "origin": "push"},
    {"name": "media.images_max", "value": 16, "origin": "push"},
    {"name": "log.level", "value": "info", "origin": "default"}])");
  answers.replicas = parsed(R"({"nats": [{"connection": "control", "connected": true},
    {"connection": "events", "connected": false, "trouble": "Authorization Violation"}],
    "members": [{"name": "f0", "fits": true},
                {"name": "f1", "fits": false, "difference": "model", "reason": "other files"}]})");
  const RouterReport report = report_of(router, answers);
  EXPECT_TRUE(report.is_ready);
  EXPECT_EQ(report.workers.at("w0").block_size, 32);
  EXPECT_EQ(report.workers.at("w0").reason, "its block size is 32");
  EXPECT_EQ(report.generation, 12);
  EXPECT_EQ(report.pushed.size(), 1U);
  EXPECT_EQ(report.settings, (std::map<std::string, std::string>{{"media.images_max", "16"},
                                                                 {"routing.policy", "kv"}}));
  EXPECT_EQ(report.nats_trouble, "Authorization Violation");
  ASSERT_EQ(report.misfits.size(), 1U);
  EXPECT_EQ(report.misfits[0].name, "f1");
}

TEST(ReportOf, ARouterWithoutAListOrWithNonsenseIsEmpty) {
  const RouterReport report = report_of({}, {});
  EXPECT_FALSE(report.generation);
  EXPECT_TRUE(report.pushed.is_null());
  EXPECT_TRUE(report.workers.empty());
  EXPECT_EQ(unreached({}, "refused").problem, "refused");
}

}  // namespace
}  // namespace sightline::judge
