// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/reconcile/troubles.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "operator/desired/object_names.h"
#include "operator/kube/object/metadata.h"
#include "operator/kube/recorder/event_series.h"
#include "operator/owned/kinds.h"
#include "tests/fakes/run_task.h"
#include "tests/unit/operator/reconcile/trial.h"

namespace sightline::reconcile {
namespace {

using client::Reason;
using object::Key;
using object::Value;

const Key kShop{"prod", "shop"};

std::string message(const Trial& trial, const std::string& type) {
  for (const crd::Condition& condition : trial.status().conditions) {
    if (condition.type == type) return condition.message;
  }
  return {};
}

// Events are written in the background.
bool has_event(Trial& trial, const std::string& reason) {
  return fakes::eventually([&] {
    const auto events = trial.server.objects(recorder::event_resource());
    return std::any_of(events.begin(), events.end(), [&](const Value& event) {
      return event["reason"].text() == reason && event["type"].text() == "Warning";
    });
  });
}

// A reconciliation that may fail, and then one step of the cluster.
void try_tick(Trial& trial) {
  static_cast<void>(trial.reconcile());
  trial.cluster.step();
  trial.clock.advance(std::chrono::seconds(1));
}

std::set<std::size_t> listed_workers(Trial& trial) {
  std::set<std::size_t> sizes;
  for (const Value& pod : trial.cluster.pods("router")) {
    sizes.insert(trial.cluster.ask({std::string(pod.at({"status", "podIP"}).text()), {}})
                     ->list["pushed"]["workers"]
                     .size());
  }
  return sizes;
}

Value deployment_of_workers(const Trial& trial) {
  for (const Value& deployment : trial.server.objects(owned::deployments_resource())) {
    if (object::label_of(deployment, desired::kComponentLabel) == desired::kWorker) {
      return deployment;
    }
  }
  return {};
}

TEST(Troubles, ForeignServiceIsReadysReasonAndAnEvent) {
  Trial trial;
  Value service = Value::object();
  service.set({"metadata", "name"}, "shop");
  service.set({"metadata", "namespace"}, "prod");
  trial.server.put(*owned::rendered_of("Service"), service);
  try_tick(trial);
  EXPECT_EQ(trial.condition("Ready"), "False NameTaken");
  EXPECT_TRUE(message(trial, "Ready").starts_with("Service/shop: Service shop already exists"))
      << message(trial, "Ready");
  EXPECT_TRUE(has_event(trial, "NameTaken"));
  ASSERT_TRUE(trial.server.remove(*owned::rendered_of("Service"), kShop, {}).ok());
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
}

TEST(Troubles, ATypoInAPodTemplateIsReadysReason) {
  Trial trial;
  trial.server.admit = [](const object::Resource&,
                          const Value& object) -> std::optional<client::Failure> {
    if (!object.at({"spec", "template", "spec"}).contains("nodeSelectr")) return std::nullopt;
    return fakes::api_failure(Reason::InternalError,
                              "failed to create typed patch object: "
                              ".spec.template.spec.nodeSelectr: field not declared in schema");
  };
  trial.change([](Value& spec) {
    spec.set({"router", "podTemplate", "spec", "nodeSelectr"}, Value::object({{"a", "b"}}));
  });
  try_tick(trial);
  try_tick(trial);
  EXPECT_EQ(trial.condition("Ready"), "False WriteFailed");
  EXPECT_NE(message(trial, "Ready").find("nodeSelectr: field not declared"), std::string::npos);
  EXPECT_NE(message(trial, "Degraded").find("nodeSelectr"), std::string::npos);
  EXPECT_TRUE(has_event(trial, "WriteFailed"));
}

TEST(Troubles, AQuotaIsNamed) {
  Trial trial;
  trial.server.admit = [](const object::Resource& resource,
                          const Value&) -> std::optional<client::Failure> {
    if (resource != owned::deployments_resource()) return std::nullopt;
    return fakes::api_failure(Reason::Forbidden,
                              "deployments.apps \"d\" is forbidden: exceeded quota: small");
  };
  try_tick(trial);
  EXPECT_EQ(trial.condition("Ready"), "False QuotaExceeded");
  EXPECT_TRUE(has_event(trial, "QuotaExceeded"));
}

TEST(Troubles, UnknownWordIsReportedAndTheAcceptedSpecRuns) {
  Trial trial;
  trial.settle();
  const std::size_t workers = trial.cluster.pods("worker").size();
  trial.change([](Value& spec) { spec.set({"router", "policy"}, "psychic"); });
  trial.tick();
  EXPECT_EQ(trial.condition("Accepted"), "False SpecNotUnderstood");
  EXPECT_EQ(trial.condition("Ready"), "False SpecNotUnderstood");
  EXPECT_TRUE(
      message(trial, "Accepted").starts_with("spec.router.policy must be one of its values"))
      << message(trial, "Accepted");
  EXPECT_TRUE(has_event(trial, "SpecNotUnderstood"));
  EXPECT_EQ(trial.cluster.pods("worker").size(), workers);
  trial.change([](Value& spec) { spec.set({"router", "policy"}, "random"); });
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
}

TEST(Troubles, AFirstSpecThatIsNotUnderstoodHasAStatus) {
  Value spec = Trial::smallest_spec();
  spec.set({"router", "policy"}, "psychic");
  Trial trial(spec);
  trial.tick();
  EXPECT_EQ(trial.condition("Accepted"), "False SpecNotUnderstood");
}

TEST(Troubles, OrphanedDeploymentIsTakenBackWithoutEmptyLists) {
  Trial trial;
  trial.settle();
  ASSERT_EQ(listed_workers(trial), std::set<std::size_t>{2});
  Value deployment = deployment_of_workers(trial);
  const std::string uid(object::uid_of(deployment));
  deployment.erase({"metadata", "ownerReferences"});
  trial.server.put(owned::deployments_resource(), deployment);
  trial.always = [&] { EXPECT_EQ(listed_workers(trial), std::set<std::size_t>{2}); };
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  const Value now = deployment_of_workers(trial);
  EXPECT_EQ(object::uid_of(now), uid);
  EXPECT_EQ(object::controller_uid_of(now),
            object::uid_of(*trial.server.find(owned::routers_resource(), kShop)));
}

TEST(Troubles, StolenDeploymentIsReportedWithoutEmptyLists) {
  Trial trial;
  trial.settle();
  const Key theirs{"prod", "theirs"};
  Value map = Value::object();
  map.set({"metadata", "name"}, theirs.name);
  map.set({"metadata", "namespace"}, theirs.name_space);
  trial.server.put(owned::config_maps_resource(), map);
  Value owner = *trial.server.find(owned::config_maps_resource(), theirs);
  object::name_kind(owner, owned::config_maps_resource());
  Value deployment = deployment_of_workers(trial);
  deployment.set({"metadata", "ownerReferences"},
                 Value::array({object::controller_reference(owner)}));
  trial.server.put(owned::deployments_resource(), deployment);
  for (int i = 0; i < 3; ++i) {
    try_tick(trial);
    EXPECT_EQ(listed_workers(trial), std::set<std::size_t>{2});
  }
  EXPECT_EQ(trial.condition("Ready"), "False NameTaken");
  EXPECT_NE(message(trial, "Ready").find("belongs to ConfigMap theirs"), std::string::npos);
  const auto file = trial.server.find(owned::config_maps_resource(),
                                      {"prod", "shop-" + trial.status().target_revision + "-live"});
  EXPECT_NE(file->at({"data", "router.yaml"}).text().find("\"workers\""), std::string_view::npos)
      << "routers that start read it";
}

TEST(Troubles, ALabelThatAPolicySetsHidesNoWorker) {
  Trial trial;
  trial.settle();
  for (const object::Resource& resource :
       {owned::deployments_resource(), owned::replica_sets_resource()}) {
    for (Value object : trial.server.objects(resource)) {
      object.set({"metadata", "labels", desired::kManagerLabel}, "the-platform");
      object.set({"metadata", "labels", desired::kComponentLabel}, "something");
      trial.server.put(resource, object);
    }
  }
  trial.always = [&] { EXPECT_EQ(listed_workers(trial), std::set<std::size_t>{2}); };
  trial.settle();
  EXPECT_EQ(trial.status().workers, "2/2");
}

TEST(Troubles, RemovedStoredSpecIsRestoredDuringARollOut) {
  Trial trial;
  trial.settle();
  trial.always = [&] { EXPECT_GE(trial.cluster.routable(), 2U); };
  trial.change([](Value& spec) { spec.set({"kv", "blockSize"}, 32); });
  trial.tick();
  const Key specs{"prod", "shop-specs"};
  Value map = *trial.server.find(owned::config_maps_resource(), specs);
  map.set({"data"}, Value::object());
  trial.server.put(owned::config_maps_resource(), map);
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  EXPECT_EQ(trial.status().revisions.size(), 1U);
}

TEST(Troubles, RevisionWithoutStoredSpecStaysUntilReplaced) {
  Trial trial;
  trial.settle();
  const std::string old = trial.status().target_revision;
  trial.change([](Value& spec) { spec.set({"kv", "blockSize"}, 32); });
  trial.tick();
  trial.restart_operator();
  Value map = *trial.server.find(owned::config_maps_resource(), {"prod", "shop-specs"});
  map.erase({"data", "revision-" + old + ".json"});
  trial.server.put(owned::config_maps_resource(), map);
  trial.tick();
  EXPECT_EQ(trial.condition("Ready"), "False RevisionUnknown");
  bool has_only_workers = false;
  trial.always = [&] {
    EXPECT_GE(trial.cluster.routable(), 2U) << "no worker may be missed";
    const bool has_workers = !trial.cluster.pods("worker", old).empty();
    const bool has_frontends = !trial.cluster.pods("frontend", old).empty();
    EXPECT_TRUE(has_workers || !has_frontends) << "frontends go before their workers";
    has_only_workers |= has_workers && !has_frontends;
  };
  trial.settle();
  EXPECT_TRUE(has_only_workers);
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  EXPECT_TRUE(trial.cluster.pods("worker", old).empty());
}

Value spec_of_two_selectors() {
  Value spec = Trial::smallest_spec();
  auto pools = Value::parse(R"([
    {"name": "b", "backend": "vllm", "role": "aggregated",
     "selector": {"matchLabels": {"app": "vllm"}}},
    {"name": "a", "backend": "vllm", "role": "aggregated",
     "selector": {"matchLabels": {"app": "vllm"}}}])");
  spec.member("pools") = *pools;
  return spec;
}

TEST(Troubles, PodOfTwoSelectorsCountsOnceAndIsReported) {
  Trial trial(spec_of_two_selectors());
  trial.cluster.add_foreign("t0", "vllm");
  trial.settle();
  EXPECT_EQ(trial.condition("PoolsDistinct"), "False WorkerInTwoPools");
  EXPECT_EQ(trial.condition("Ready"), "False WorkerInTwoPools");
  EXPECT_EQ(trial.status().workers, "1/1");
  EXPECT_EQ(listed_workers(trial), std::set<std::size_t>{1});
}

TEST(Troubles, ASelectorNeverFindsPodsOfAMultimodalRouter) {
  Value spec = Trial::smallest_spec();
  auto pools = Value::parse(R"([{"name": "all", "backend": "vllm", "role": "aggregated",
    "selector": {"matchLabels": {"app.kubernetes.io/name": "sightline"}}}])");
  spec.member("pools") = *pools;
  Trial trial(spec);
  trial.settle();
  EXPECT_EQ(trial.status().workers, "0/0");
  EXPECT_EQ(listed_workers(trial), std::set<std::size_t>{0});
}

TEST(Troubles, AScaleObjectOfAnotherRouterIsNotWritten) {
  Value spec = Trial::smallest_spec();
  auto pool = Value::parse(R"({"name": "gpu", "backend": "simulator", "role": "aggregated",
    "autoscaling": {"minReplicas": 1, "maxReplicas": 4}, "template": {}})");
  spec.member("pools") = Value::array({*pool});
  Trial trial(spec);
  Value theirs = Value::object();
  theirs.set({"metadata", "name"}, "shop-gpu");
  theirs.set({"metadata", "namespace"}, "prod");
  theirs.set({"metadata", "labels", desired::kRouterLabel}, "sho");
  Value sho = *trial.server.find(owned::routers_resource(), kShop);
  sho.set({"metadata"}, Value::object({{"name", "sho"}, {"namespace", "prod"}}));
  ASSERT_TRUE(trial.server.create(owned::routers_resource(), sho).ok());
  sho = *trial.server.find(owned::routers_resource(), {"prod", "sho"});
  theirs.set({"metadata", "ownerReferences"}, Value::array({object::controller_reference(sho)}));
  theirs.set({"spec", "replicas"}, 9);
  trial.server.put(owned::scales_resource(), theirs);
  const Value before = *trial.server.find(owned::scales_resource(), {"prod", "shop-gpu"});
  for (int i = 0; i < 3; ++i) try_tick(trial);
  EXPECT_EQ(*trial.server.find(owned::scales_resource(), {"prod", "shop-gpu"}), before);
  EXPECT_EQ(trial.condition("Ready"), "False NameTaken");
  EXPECT_NE(message(trial, "Ready").find("MultimodalRouter sho"), std::string::npos);
}

TEST(Troubles, RecreatedKindRestoresEachStatus) {
  Trial trial;
  trial.settle();
  Value again = *trial.server.find(owned::routers_resource(), kShop);
  again.erase({"status"});
  again.set({"metadata"}, Value::object({{"name", "shop"}, {"namespace", "prod"}}));
  trial.server.forget_kind(owned::routers_resource());
  trial.server.know_kind(owned::routers_resource());
  ASSERT_TRUE(trial.server.create(owned::routers_resource(), again).ok());
  EXPECT_FALSE(trial.reconcile().ok()) << "the old one's Secrets are still there";
  EXPECT_EQ(trial.condition("Ready"), "False ReadFailed");
  while (trial.server.collect_garbage() > 0) {
  }
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
}

TEST(Troubles, StatusEntriesOfOthersDoNotStay) {
  Trial trial;
  trial.settle();
  Value patch = *trial.server.find(owned::routers_resource(), kShop);
  Value theirs = Value::object();
  object::name_kind(theirs, owned::routers_resource());
  theirs.set({"metadata", "name"}, "shop");
  theirs.set({"metadata", "namespace"}, "prod");
  Value condition = Value::object({{"type", "Theirs"}, {"status", "True"}, {"reason", "Foo"}});
  condition.member("message") = "bar";
  condition.member("lastTransitionTime") = "2026-01-01T00:00:00Z";
  theirs.set({"status", "conditions"}, Value::array({condition}));
  ASSERT_TRUE(trial.server
                  .apply(owned::routers_resource(), theirs,
                         {.manager = "theirs", .is_forced = true, .subresource = "status"})
                  .ok());
  EXPECT_EQ(trial.condition("Theirs"), "True Foo");
  trial.settle();
  EXPECT_EQ(trial.condition("Theirs"), "");
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  EXPECT_EQ(trial.server.find(owned::routers_resource(), kShop)->at({"status"}), patch["status"]);
}

TEST(Troubles, ReportsOnlyLastingFailures) {
  Trial trial;
  trial.settle();
  trial.server.before = [](const fakes::Call& call) -> std::optional<client::Failure> {
    const bool is_claim = call.resource == owned::claims_resource();
    if (!is_claim) return std::nullopt;
    return fakes::api_failure(Reason::InternalError, "etcd is away");
  };
  trial.clock.advance(std::chrono::minutes(1));
  EXPECT_FALSE(trial.reconcile().ok());
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  trial.clock.advance(std::chrono::seconds(11));
  EXPECT_FALSE(trial.reconcile().ok());
  EXPECT_EQ(trial.condition("Ready"), "False ReadFailed");
}

TEST(Troubles, ReadsSecretsOnlyWhenTheyChange) {
  Trial trial;
  trial.settle();
  const auto reads = [&] {
    const auto calls = trial.server.calls();
    return std::count_if(calls.begin(), calls.end(), [](const fakes::Call& call) {
      return call.verb == "get" && call.resource == owned::secrets_resource();
    });
  };
  const auto before = reads();
  for (int i = 0; i < 120; ++i) trial.tick();
  EXPECT_EQ(reads(), before);
  Value tokens = *trial.server.find(owned::secrets_resource(), {"prod", "shop-tokens"});
  tokens.set({"data", "admin"}, "bmV3LXRva2Vu");
  trial.server.put(owned::secrets_resource(), tokens);
  trial.tick();
  EXPECT_GT(reads(), before);
}

TEST(Troubles, PodMonitorsAreMadeOnceTheirKindIsThere) {
  Trial trial;
  trial.settle();
  EXPECT_TRUE(trial.names(owned::pod_monitors_resource()).empty());
  trial.server.know_kind(owned::pod_monitors_resource());
  EXPECT_TRUE(fakes::eventually([&] {
    trial.tick();
    return !trial.names(owned::pod_monitors_resource()).empty();
  }));
}

TEST(TroubleOf, TroubleHasTheReasonOfItsCause) {
  client::Failure failure;
  failure.message = "no";
  EXPECT_EQ(trouble_of(failure, "WriteFailed", "Service/a").reason, "WriteFailed");
  EXPECT_EQ(trouble_of(failure, "WriteFailed", "Service/a").message, "Service/a: no");
  failure.causes.push_back({std::string(client::kNameTaken), {}, {}});
  EXPECT_EQ(trouble_of(failure, "WriteFailed", {}).reason, "NameTaken");
  EXPECT_EQ(trouble_of(failure, "WriteFailed", {}).message, "no");
}

}  // namespace
}  // namespace sightline::reconcile
