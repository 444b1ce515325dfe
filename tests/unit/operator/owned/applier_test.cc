// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/owned/applier.h"

#include <algorithm>
#include <atomic>
#include <memory>

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

const Key kMap{"prod", "shop-live"};

Value map_that_says(const std::string& text) {
  Value map = Value::object();
  object::name_kind(map, config_maps_resource());
  map.set({"metadata", "name"}, kMap.name);
  map.set({"metadata", "namespace"}, kMap.name_space);
  map.set({"metadata", "labels", desired::kRouterLabel}, "shop");
  map.set({"metadata", "labels", desired::kManagerLabel}, desired::kManager);
  map.set({"data", "text"}, text);
  return map;
}

class ApplierTest : public testing::Test {
 protected:
  ApplierTest() {
    server_.before = [this](const fakes::Call& call) -> std::optional<client::Failure> {
      if (!is_cut_off_ || (call.verb != "watch" && call.verb != "list")) return std::nullopt;
      client::Failure failure;
      failure.reason = client::Reason::Unreachable;
      return failure;
    };
    caches_ =
        std::make_unique<Caches>(Caches::Options{.name_spaces = {}, .on_change = [](const Key&) {}},
                                 server_, system_clock(), metrics_);
    EXPECT_TRUE(caches_->wait_until_synced({}, fakes::kPatience));
    applier_ = std::make_unique<Applier>(server_, *caches_);
  }

  void wait_for_cache() {
    const Value now = *server_.find(config_maps_resource(), kMap);
    EXPECT_TRUE(eventually([&] {
      const auto cached = caches_->find(config_maps_resource(), kMap);
      return cached != nullptr &&
             object::resource_version_of(*cached) == object::resource_version_of(now);
    }));
  }

  // The caches get no more changes.
  void cut_off() {
    is_cut_off_ = true;
    server_.end_watches();
  }

  // The number of writes, with or without a change.
  [[nodiscard]] std::size_t applied() const {
    const auto calls = server_.calls();
    return static_cast<std::size_t>(std::count_if(
        calls.begin(), calls.end(), [](const fakes::Call& call) { return call.verb == "apply"; }));
  }

  fakes::FakeApiServer server_;
  runtime::Metrics metrics_;
  std::atomic<bool> is_cut_off_{false};
  std::unique_ptr<Caches> caches_;
  std::unique_ptr<Applier> applier_;
};

TEST_F(ApplierTest, WritesOnceBeforeTheCacheHasIt) {
  ASSERT_TRUE(applier_->apply(map_that_says("one")).ok());
  wait_for_cache();
  cut_off();
  ASSERT_TRUE(applier_->apply(map_that_says("two")).ok());
  const std::size_t before = applied();
  ASSERT_TRUE(applier_->apply(map_that_says("two")).ok());
  EXPECT_EQ(applied(), before);
}

TEST_F(ApplierTest, WritesAgainAfterAForeignChange) {
  ASSERT_TRUE(applier_->apply(map_that_says("one")).ok());
  Value other = *server_.find(config_maps_resource(), kMap);
  other.set({"data", "text"}, "other");
  server_.put(config_maps_resource(), other);
  wait_for_cache();
  ASSERT_TRUE(applier_->apply(map_that_says("one")).ok());
  EXPECT_EQ(server_.find(config_maps_resource(), kMap)->at({"data", "text"}).text(), "one");
}

TEST_F(ApplierTest, TakesNothingBackForAnOwnerThatWasDeleted) {
  Value owner = Value::object();
  object::name_kind(owner, routers_resource());
  owner.set({"metadata", "name"}, "shop");
  owner.set({"metadata", "namespace"}, "prod");
  owner.set({"metadata", "finalizers"}, Value::array({"orphan"}));
  server_.put(routers_resource(), owner);
  const std::string uid(object::uid_of(*server_.find(routers_resource(), {"prod", "shop"})));
  Value map = map_that_says("one");
  server_.put(config_maps_resource(), map);  // orphaned: it has our label and no owner
  wait_for_cache();
  const auto of_owner = [&](const std::string& number) {
    Value reference = Value::object({{"kind", "MultimodalRouter"}, {"name", "shop"}});
    reference.member("uid") = number;
    reference.member("controller") = true;
    map.set({"metadata", "ownerReferences"}, Value::array({reference}));
    return applier_->apply(map);
  };
  const auto of_another = of_owner("of-yesterday");
  ASSERT_TRUE(failed(of_another, client::Reason::Conflict));
  EXPECT_NE(of_another.error().message.find("MultimodalRouter shop was deleted"),
            std::string::npos);
  ASSERT_TRUE(server_.remove(routers_resource(), {"prod", "shop"}, {}).ok());
  ASSERT_TRUE(server_.find(routers_resource(), {"prod", "shop"}).has_value());
  EXPECT_TRUE(failed(of_owner(uid), client::Reason::Conflict));
  EXPECT_EQ(applied(), 0U);
}

}  // namespace
}  // namespace sightline::owned
