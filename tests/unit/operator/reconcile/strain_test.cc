// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "operator/desired/object_names.h"
#include "operator/desired/secrets.h"
#include "operator/kube/object/metadata.h"
#include "operator/owned/kinds.h"
#include "tests/unit/operator/reconcile/trial.h"

// Reconciliations with processes that are slow, silent, lying or gone.
namespace sightline::reconcile {
namespace {

using client::Reason;
using object::Key;
using object::Value;

std::string revision_of(const Value& pod) {
  return std::string(object::label_of(pod, desired::kRevisionLabel));
}

std::set<std::string> revisions(const Trial& trial) {
  std::set<std::string> revisions;
  for (const Value& pod : trial.cluster.pods("worker")) revisions.insert(revision_of(pod));
  return revisions;
}

Value config_map(const std::string& name, const std::string& key, const std::string& text) {
  Value map = Value::object();
  map.set({"metadata", "name"}, name);
  map.set({"metadata", "namespace"}, "prod");
  map.set({"data", key}, text);
  return map;
}

// The key that the pods of a revision read.
std::string key_of(const Trial& trial, const std::string& revision) {
  const auto secret =
      trial.server.find(owned::secrets_resource(), {"prod", "shop-" + revision + "-identity"});
  return secret ? desired::secret_value(*secret, desired::kIdentityKey).value_or("") : "";
}

void replace_identity(Trial& trial, const std::string& encoded) {
  Value secret = *trial.server.find(owned::secrets_resource(), {"prod", "shop-identity"});
  secret.set({"data", desired::kIdentityKey}, encoded);
  trial.server.put(owned::secrets_resource(), secret);
}

void tick_until(Trial& trial, const std::function<bool()>& is_so) {
  for (int i = 0; i < 200 && !is_so(); ++i) trial.tick();
  EXPECT_TRUE(is_so());
}

TEST(Strain, PodsOfARevisionNeverMeetTheKeyOfAnotherOne) {
  Trial trial;
  trial.settle();
  const std::string old = *revisions(trial).begin();
  const std::string first = key_of(trial, old);
  EXPECT_EQ(first.size(), 32U);
  replace_identity(trial, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
  tick_until(trial, [&] { return revisions(trial).size() == 2; });
  EXPECT_EQ(key_of(trial, old), first);
  trial.settle();
  ASSERT_EQ(revisions(trial).size(), 1U);
  EXPECT_EQ(key_of(trial, *revisions(trial).begin()), "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(key_of(trial, old), "") << "goes with the revision";
}

TEST(Strain, NamesAndIgnoresAKeyOfAnotherRevision) {
  Trial trial;
  trial.settle();
  const std::string revision = *revisions(trial).begin();
  const Key key{"prod", "shop-" + revision + "-identity"};
  Value secret = *trial.server.find(owned::secrets_resource(), key);
  secret.set({"data", desired::kIdentityKey}, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=");
  trial.server.put(owned::secrets_resource(), secret);
  trial.clock.advance(std::chrono::minutes(1));
  EXPECT_FALSE(trial.reconcile().ok());
  EXPECT_EQ(trial.condition("Ready"), "False WriteFailed");
  ASSERT_TRUE(trial.server.remove(owned::secrets_resource(), key, {}).ok());
  trial.clock.advance(std::chrono::minutes(1));
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  EXPECT_EQ(*revisions(trial).begin(), revision);
}

TEST(Strain, ASecretOfADeletedObjectIsNotTakenOver) {
  Trial trial;
  trial.settle();
  const std::string old = *revisions(trial).begin();
  ASSERT_TRUE(trial.server.remove(owned::routers_resource(), {"prod", "shop"}, {}).ok());
  Value again = Value::object();
  object::name_kind(again, owned::routers_resource());
  again.set({"metadata", "name"}, "shop");
  again.set({"metadata", "namespace"}, "prod");
  again.member("spec") = Trial::smallest_spec();
  ASSERT_TRUE(trial.server.create(owned::routers_resource(), again).ok());
  const auto early = trial.reconcile();
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().reason, Reason::Conflict);
  while (trial.server.collect_garbage() > 0) {
  }
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  EXPECT_NE(*revisions(trial).begin(), old) << "another key";
}

TEST(Strain, ReportsASecretWithoutItsKey) {
  Trial trial;
  trial.settle();
  Value secret = *trial.server.find(owned::secrets_resource(), {"prod", "shop-tokens"});
  secret.erase({"data"});
  trial.server.put(owned::secrets_resource(), secret);
  trial.clock.advance(std::chrono::minutes(1));
  EXPECT_FALSE(trial.reconcile().ok());
  EXPECT_EQ(trial.condition("Ready"), "False ReadFailed");
  EXPECT_EQ(trial.condition("WorkersReady"), "True WorkersRoutable") << "as it was";
  const auto told = [&] {
    const auto writes = trial.server.writes();
    return std::count_if(writes.begin(), writes.end(), [](const fakes::Call& call) {
      return call.resource == owned::routers_resource();
    });
  };
  const auto before = told();
  EXPECT_FALSE(trial.reconcile().ok());
  EXPECT_EQ(told(), before) << "once";
}

TEST(Strain, KeepsTheChatTemplateOfItsRevision) {
  Value spec = Trial::smallest_spec();
  spec.set({"model", "chatTemplate", "configMap"}, "chat");
  spec.set({"model", "chatTemplate", "key"}, "t");
  Trial trial(spec);
  trial.server.put(owned::config_maps_resource(), config_map("chat", "t", "one"));
  trial.settle();
  const std::string first = *revisions(trial).begin();
  const auto text = [&](const std::string& revision) {
    const auto map = trial.server.find(owned::config_maps_resource(),
                                       {"prod", "shop-" + revision + "-template"});
    return map ? std::string(map->at({"data", "chat_template.jinja"}).text()) : std::string();
  };
  EXPECT_EQ(text(first), "one");
  trial.server.put(owned::config_maps_resource(), config_map("chat", "t", "two"));
  tick_until(trial, [&] { return revisions(trial).size() == 2; });
  EXPECT_EQ(text(first), "one");
  trial.settle();
  const std::string second = *revisions(trial).begin();
  EXPECT_EQ(text(second), "two");
  ASSERT_TRUE(trial.server.remove(owned::config_maps_resource(), {"prod", "chat"}, {}).ok());
  trial.settle();
  EXPECT_EQ(trial.condition("Accepted"), "False ConfigMapMissing");
  EXPECT_EQ(revisions(trial), (std::set<std::string>{second}));
  EXPECT_EQ(text(second), "two");
}

Value spec_with_selector() {
  Value spec = Trial::smallest_spec();
  auto pool = Value::parse(R"({"name": "old", "backend": "vllm", "role": "aggregated",
    "selector": {"matchLabels": {"app": "vllm"}, "port": 8000}})");
  spec.member("pools").append(*pool);
  return spec;
}

void put_selected(Trial& trial, int count) {
  for (int i = 0; i < count; ++i) {
    Value pod = Value::object();
    pod.set({"metadata", "name"}, "vllm-" + std::to_string(i));
    pod.set({"metadata", "namespace"}, "prod");
    pod.set({"metadata", "labels", "app"}, "vllm");
    pod.set({"status", "phase"}, "Running");
    pod.set({"status", "podIP"}, "10.9." + std::to_string(i / 250) + "." + std::to_string(i % 250));
    trial.server.put(owned::pods_resource(), pod);
  }
}

TEST(Strain, UnlistedPodsDoNotRemoveWorkers) {
  Trial trial(spec_with_selector());
  put_selected(trial, 1);
  trial.settle();
  EXPECT_EQ(trial.status().workers, "3/3");
  const std::size_t pushes = trial.cluster.puts("/v1/workers");
  bool is_broken = true;
  trial.server.before = [&](const fakes::Call& call) -> std::optional<client::Failure> {
    if (!is_broken || call.verb != "list") return std::nullopt;
    return fakes::api_failure(Reason::TooManyRequests, "later");
  };
  EXPECT_FALSE(trial.reconcile().ok());
  EXPECT_EQ(trial.cluster.puts("/v1/workers"), pushes);
  is_broken = false;
  trial.settle();
  EXPECT_EQ(trial.status().workers, "3/3");
}

TEST(Strain, ReportsASelectorWithTooManyPods) {
  Trial trial(spec_with_selector());
  put_selected(trial, static_cast<int>(Observer::kSelectedMax) + 1);
  EXPECT_FALSE(trial.reconcile().ok());
  EXPECT_EQ(trial.condition("Ready"), "False ReadFailed");
}

TEST(Strain, SilentRoutersAndFrontendsCostALimitedTime) {
  Value spec = Trial::smallest_spec();
  spec.set({"router", "replicas"}, 32);
  spec.set({"frontend", "replicas"}, 40);
  Trial trial(spec);
  trial.settle();
  trial.cluster.on_silence = [&] { trial.clock.advance(std::chrono::seconds(2)); };
  for (const std::string component : {"router", "frontend"}) {
    for (const Value& pod : trial.cluster.pods(component)) {
      trial.cluster.silence(object::key_of(pod).name, true);
    }
  }
  const Instant start = trial.clock.now();
  EXPECT_TRUE(trial.reconcile().ok());
  EXPECT_LE(trial.clock.now() - start, std::chrono::seconds(24));
  EXPECT_EQ(trial.cluster.routable(), 2U);
}

TEST(Strain, SlowApiServerTakesALimitedTimePerRun) {
  Trial trial;
  trial.server.after = [&](const fakes::Call& call) -> std::optional<client::Failure> {
    if (call.is_write()) trial.clock.advance(std::chrono::seconds(7));
    return std::nullopt;
  };
  const Instant start = trial.clock.now();
  EXPECT_FALSE(trial.reconcile().ok());
  EXPECT_LE(trial.clock.now() - start, std::chrono::minutes(2));
  bool is_done = false;
  for (int i = 0; i < 200 && !is_done; ++i) {
    trial.clock.advance(std::chrono::minutes(1));
    is_done = trial.reconcile().ok() && trial.condition("Ready") == "True AsWanted";
    trial.cluster.step();
  }
  EXPECT_TRUE(is_done);
}

TEST(Strain, ANamespaceThatEndsIsLeftInPeace) {
  Trial trial;
  trial.settle();
  trial.server.terminate_namespace("prod");
  for (const Value& object : trial.server.objects(owned::deployments_resource())) {
    ASSERT_TRUE(
        trial.server.remove(owned::deployments_resource(), object::key_of(object), {}).ok());
  }
  const std::size_t before = trial.server.calls().size();
  const auto answer = trial.reconcile();
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_GT(**answer, std::chrono::seconds(10));
  EXPECT_LE(trial.server.calls().size() - before, 8U);
}

TEST(Strain, WhatCannotBeKeptIsNotBegun) {
  Trial trial;
  trial.settle();
  const auto before = trial.names(owned::deployments_resource());
  trial.server.admit = [](const object::Resource&,
                          const Value& object) -> std::optional<client::Failure> {
    if (object::key_of(object).name != "shop-specs") return std::nullopt;
    return fakes::api_failure(Reason::Forbidden, "quota");
  };
  trial.change([](Value& spec) { spec.set({"kv", "blockSize"}, 32); });
  EXPECT_FALSE(trial.reconcile().ok());
  EXPECT_EQ(trial.condition("Ready"), "False WriteFailed");
  EXPECT_EQ(trial.names(owned::deployments_resource()), before);
}

TEST(Strain, RewritesStoredSpecsDeletedDuringARollOut) {
  Trial trial;
  trial.settle();
  const std::set<std::string> old = revisions(trial);
  trial.always = [&] { EXPECT_GE(trial.cluster.routable(), 2U) << "no worker may be missed"; };
  trial.change([](Value& spec) { spec.set({"kv", "blockSize"}, 32); });
  ASSERT_TRUE(trial.reconcile().ok());
  const Key specs{"prod", "shop-specs"};
  const auto before = trial.server.find(owned::config_maps_resource(), specs)->at({"data"});
  ASSERT_TRUE(trial.server.remove(owned::config_maps_resource(), specs, {}).ok());
  ASSERT_TRUE(trial.reconcile().ok());
  EXPECT_EQ(trial.server.find(owned::config_maps_resource(), specs)->at({"data"}), before);
  trial.settle();
  EXPECT_EQ(trial.condition("Ready"), "True AsWanted");
  EXPECT_EQ(revisions(trial).size(), 1U);
  EXPECT_NE(revisions(trial), old);
}

TEST(Strain, AutoscalerTakesOverTheNumberOfFrontends) {
  Value spec = Trial::smallest_spec();
  spec.set({"frontend", "replicas"}, 5);
  Trial trial(spec);
  trial.settle();
  const Key key{"prod", "shop-" + *revisions(trial).begin() + "-frontend"};
  const auto replicas = [&] {
    return trial.server.find(owned::deployments_resource(), key)->at({"spec", "replicas"});
  };
  trial.always = [&] { EXPECT_EQ(replicas().integer().value_or(1), 5); };
  trial.change([](Value& changed) {
    changed.erase({"frontend", "replicas"});
    changed.set({"frontend", "autoscaling", "minReplicas"}, 2);
    changed.set({"frontend", "autoscaling", "maxReplicas"}, 8);
  });
  trial.settle();
  trial.always = [] {};
  Value more = Value::object();
  more.set({"spec", "replicas"}, 7);
  ASSERT_TRUE(trial.server.merge_patch(owned::deployments_resource(), key, more, {}).ok());
  trial.change([](Value& changed) { changed.set({"image"}, "sightline:2"); });
  trial.settle();
  EXPECT_EQ(replicas().integer(), 7);
  trial.change([](Value& changed) {
    changed.erase({"frontend", "autoscaling"});
    changed.set({"frontend", "replicas"}, 3);
  });
  trial.settle();
  EXPECT_EQ(replicas().integer(), 3);
}

}  // namespace
}  // namespace sightline::reconcile
