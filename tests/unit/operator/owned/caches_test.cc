// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/owned/caches.h"

#include <atomic>

#include <gtest/gtest.h>

#include "operator/desired/object_names.h"
#include "operator/kube/object/metadata.h"
#include "operator/owned/kinds.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/run_task.h"

namespace sightline::owned {
namespace {

using fakes::eventually;
using object::Key;
using object::Value;

const Key kShop{"prod", "shop"};

class CachesTest : public testing::Test {
 protected:
  CachesTest() {
    Value router = Value::object();
    router.set({"metadata", "name"}, kShop.name);
    router.set({"metadata", "namespace"}, kShop.name_space);
    router.set({"spec", "model", "name"}, "demo");
    server_.put(routers_resource(), router);
    Value pod = Value::object();
    pod.set({"metadata", "name"}, "shop-0");
    pod.set({"metadata", "namespace"}, kShop.name_space);
    pod.set({"metadata", "labels", desired::kRouterLabel}, kShop.name);
    pod.set({"metadata", "annotations", "a"}, "b");
    pod.set({"spec", "nodeName"}, "n1");
    pod.set({"status", "podIP"}, "10.0.0.1");
    server_.put(pods_resource(), pod);
    caches_ = std::make_unique<Caches>(
        Caches::Options{.name_spaces = {}, .on_change = [this](const Key&) { ++changes_; }},
        server_, system_clock(), metrics_);
    EXPECT_TRUE(caches_->wait_until_synced({}, fakes::kPatience));
    EXPECT_TRUE(eventually([&] { return changes_ == 2; }));
  }

  // Changes the MultimodalRouter and waits until the cache has it.
  void change(const std::function<void(Value&)>& edit) {
    Value router = *server_.find(routers_resource(), kShop);
    edit(router);
    server_.put(routers_resource(), router);
    const Value now = *server_.find(routers_resource(), kShop);
    EXPECT_TRUE(eventually([&] {
      const auto cached = caches_->router(kShop);
      return object::resource_version_of(*cached) == object::resource_version_of(now);
    }));
  }

  fakes::FakeApiServer server_;
  runtime::Metrics metrics_;
  std::atomic<int> changes_{0};
  std::unique_ptr<Caches> caches_;
};

TEST_F(CachesTest, ReportANewSpecButNotOurStatus) {
  change([](Value& router) { router.set({"status", "workers"}, "1/2"); });
  change([](Value& router) { router.set({"status", "workers"}, "2/2"); });
  EXPECT_EQ(changes_, 2);
  change([](Value& router) { router.set({"spec", "model", "name"}, "other"); });
  EXPECT_TRUE(eventually([&] { return changes_ == 4; })) << "the state before and after";
}

TEST_F(CachesTest, ReportADeletionOfAnObject) {
  static_cast<void>(server_.remove(routers_resource(), kShop, {}));
  EXPECT_TRUE(eventually([&] { return changes_ == 3; }));
}

TEST_F(CachesTest, HoldObjectsOfTheWatchedNamespacesOnly) {
  for (const std::string name_space : {"here", "there", "elsewhere"}) {
    Value map = Value::object();
    map.set({"metadata", "name"}, "shop-specs");
    map.set({"metadata", "namespace"}, name_space);
    map.set({"metadata", "labels", desired::kRouterLabel}, "shop");
    server_.put(config_maps_resource(), map);
  }
  const Caches several({.name_spaces = {"here", "there"}, .on_change = [](const Key&) {}}, server_,
                       system_clock(), metrics_);
  ASSERT_TRUE(several.wait_until_synced({}, fakes::kPatience));
  EXPECT_NE(several.find(config_maps_resource(), {"here", "shop-specs"}), nullptr);
  EXPECT_NE(several.find(config_maps_resource(), {"there", "shop-specs"}), nullptr);
  EXPECT_EQ(several.find(config_maps_resource(), {"elsewhere", "shop-specs"}), nullptr);
  EXPECT_EQ(several.count(config_maps_resource()), 2U);
}

TEST_F(CachesTest, KeepOfPodsWhatIsReadOfThem) {
  const auto pods = caches_->pods_of(kShop);
  ASSERT_EQ(pods.size(), 1U);
  EXPECT_TRUE(pods[0]->at({"spec"}).is_null());
  EXPECT_TRUE(pods[0]->at({"metadata", "annotations"}).is_null());
  EXPECT_EQ(pods[0]->at({"status", "podIP"}).text(), "10.0.0.1");
}

}  // namespace
}  // namespace sightline::owned
