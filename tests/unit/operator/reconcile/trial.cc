// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/operator/reconcile/trial.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "common/base/json.h"

#include "operator/crd/read.h"
#include "operator/desired/object_names.h"
#include "operator/kube/object/metadata.h"
#include "operator/owned/kinds.h"
#include "tests/fakes/run_task.h"

namespace sightline::reconcile {

using object::Key;
using object::Value;

namespace {

const Key kShop{"prod", "shop"};
constexpr int kTicksMax = 300;

std::vector<object::Resource> cached_resources() {
  std::vector<object::Resource> resources(owned::rendered_resources().begin(),
                                          owned::rendered_resources().end());
  std::erase_if(resources, [](const auto& one) { return one.kind == "PodMonitor"; });
  resources.push_back(owned::routers_resource());
  resources.push_back(owned::pods_resource());
  resources.push_back(owned::replica_sets_resource());
  resources.push_back(owned::secrets_resource());
  return resources;
}

}  // namespace

struct Trial::Operator {
  Operator(fakes::FakeApiServer& server, FakeCluster& cluster, const Clock& clock,
           runtime::Metrics& metrics)
      : events({.controller = "test", .instance = "test-1"}, server, system_clock(), metrics),
        caches({.name_spaces = {}, .on_change = [](const Key&) {}, .seed = 1}, server,
               system_clock(), metrics),
        reconciler({.images = {.router = "sightline:1", .nats = "nats:1", .download = "hf:1"},
                    .version = "1.0.0"},
                   {.api = server,
                    .caches = caches,
                    .routers = cluster,
                    .events = events,
                    .clock = clock}) {}

  recorder::EventRecorder events;
  owned::Caches caches;
  Reconciler reconciler;
};

Value Trial::smallest_spec() {
  auto spec = Value::parse(R"({
    "model": {"name": "demo", "source": {"pvc": {"claimName": "models"}}},
    "pools": [{"name": "gpu", "backend": "simulator", "role": "aggregated", "replicas": 2,
               "template": {}}],
    "frontend": {"replicas": 2},
    "router": {"replicas": 2},
    "rollout": {"maxSurge": 1, "maxUnavailable": 0}})");
  EXPECT_TRUE(spec.ok());
  return *spec;
}

Trial::Trial(Value spec) {
  server.forget_kind(owned::pod_monitors_resource());
  Value claim = Value::object();
  claim.set({"metadata", "name"}, "models");
  claim.set({"metadata", "namespace"}, kShop.name_space);
  server.put(owned::claims_resource(), claim);
  Value object = Value::object();
  object::name_kind(object, owned::routers_resource());
  object.set({"metadata", "name"}, kShop.name);
  object.set({"metadata", "namespace"}, kShop.name_space);
  object.member("spec") = std::move(spec);
  EXPECT_TRUE(server.create(owned::routers_resource(), object).ok());
  start_operator();
}

Trial::~Trial() = default;

void Trial::start_operator() {
  operator_ = std::make_unique<Operator>(server, cluster, clock, metrics_);
  EXPECT_TRUE(operator_->caches.wait_until_synced({}, fakes::kPatience));
}

void Trial::restart_operator() {
  operator_.reset();
  start_operator();
}

void Trial::wait_for_caches() const {
  const auto is_same = [&](const object::Resource& resource) {
    std::size_t ours = 0;
    for (const Value& object : server.objects(resource)) {
      const bool is_ours = resource.kind == owned::routers_resource().kind ||
                           resource.kind == owned::secrets_resource().kind ||
                           !object::label_of(object, desired::kRouterLabel).empty();
      if (!is_ours) continue;
      ++ours;
      const auto cached = operator_->caches.find(resource, object::key_of(object));
      if (cached == nullptr ||
          object::resource_version_of(*cached) != object::resource_version_of(object)) {
        return false;
      }
    }
    return operator_->caches.count(resource) == ours;
  };
  EXPECT_TRUE(fakes::eventually([&] {
    const auto resources = cached_resources();
    return std::all_of(resources.begin(), resources.end(), is_same);
  }));
}

client::Answer<std::optional<Duration>> Trial::reconcile() {
  wait_for_caches();
  return operator_->reconciler.reconcile(kShop);
}

void Trial::tick() {
  const auto answer = reconcile();
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  cluster.step();
  clock.advance(std::chrono::seconds(1));
  if (always) always();
}

int Trial::settle() {
  std::uint64_t before = 0;
  int quiet = 0;
  for (int i = 0; i < kTicksMax; ++i) {
    before = server.version();
    const std::size_t puts = cluster.puts("/v1/workers") + cluster.puts("/v1/settings");
    tick();
    const bool is_quiet = server.version() == before &&
                          puts == cluster.puts("/v1/workers") + cluster.puts("/v1/settings");
    quiet = is_quiet ? quiet + 1 : 0;
    if (quiet == 3) return i;
    if (testing::Test::HasFailure()) return i;
  }
  ADD_FAILURE() << "not quiet after " << kTicksMax << " reconciliations";
  return kTicksMax;
}

void Trial::change(const std::function<void(Value& spec)>& edit) {
  Value object = *server.find(owned::routers_resource(), kShop);
  Value spec = object["spec"];
  edit(spec);
  object.member("spec") = spec;
  EXPECT_TRUE(server.update(owned::routers_resource(), object).ok());
}

void Trial::remove() {
  EXPECT_TRUE(server.remove(owned::routers_resource(), kShop, {}).ok());
  while (server.collect_garbage() > 0) {
  }
}

crd::Status Trial::status() const {
  const auto object = server.find(owned::routers_resource(), kShop);
  auto document = json::Document::parse(object->to_text());
  auto status = crd::read_status(document->root());
  EXPECT_TRUE(status.ok());
  return *status;
}

std::string Trial::condition(const std::string& type) const {
  for (const crd::Condition& condition : status().conditions) {
    if (condition.type != type) continue;
    const char* text = condition.status == crd::ConditionStatus::True    ? "True "
                       : condition.status == crd::ConditionStatus::False ? "False "
                                                                         : "Unknown ";
    return text + condition.reason;
  }
  return {};
}

std::vector<std::string> Trial::names(const object::Resource& resource) const {
  std::vector<std::string> names;
  for (const Value& object : server.objects(resource)) names.push_back(object::key_of(object).name);
  return names;
}

}  // namespace sightline::reconcile
