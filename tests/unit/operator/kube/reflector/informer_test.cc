// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/kube/reflector/informer.h"

#include <atomic>

#include <gtest/gtest.h>

#include "operator/kube/object/metadata.h"
#include "tests/fakes/fake_api_server.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fakes/run_task.h"

namespace sightline::reflector {
namespace {

using fakes::eventually;
using object::Value;

const object::Resource kPods{"", "v1", "pods", "Pod"};

Value pod(const std::string& name) {
  Value object;
  object.set({"metadata", "name"}, name);
  object.set({"metadata", "namespace"}, "s");
  return object;
}

TEST(Informer, FollowsTheServer) {
  fakes::FakeApiServer server;
  server.put(kPods, pod("a"));
  runtime::Metrics metrics;
  std::atomic<int> changes{0};
  Informer informer({.resource = kPods, .on_change = [&](const Change&) { ++changes; }}, server,
                    system_clock(), metrics);
  ASSERT_TRUE(informer.wait_until_synced({}, fakes::kPatience));
  EXPECT_NE(informer.store().get({"s", "a"}), nullptr);
  server.put(kPods, pod("b"));
  EXPECT_TRUE(eventually([&] { return informer.store().size() == 2; }));
  static_cast<void>(server.remove(kPods, {"s", "a"}, {}));
  EXPECT_TRUE(eventually([&] { return changes == 3; }));
  EXPECT_EQ(informer.store().get({"s", "a"}), nullptr);
}

TEST(Informer, OpensAWatchThatIsCutAgainWithoutAList) {
  fakes::FakeApiServer server;
  runtime::Metrics metrics;
  test::ManualClock clock;
  Informer informer({.resource = kPods}, server, clock, metrics);
  ASSERT_TRUE(eventually([&] { return server.open_watches() == 1; }));
  clock.advance(std::chrono::seconds(2));
  server.put(kPods, pod("a"));
  ASSERT_TRUE(eventually([&] { return informer.store().size() == 1; }));
  server.end_watches();
  ASSERT_TRUE(eventually([&] { return server.open_watches() == 1; }));
  server.put(kPods, pod("b"));
  EXPECT_TRUE(eventually([&] { return informer.store().size() == 2; }));
  int lists = 0;
  for (const auto& call : server.calls()) lists += call.verb == "list" ? 1 : 0;
  EXPECT_EQ(lists, 1);
}

TEST(Informer, EndsWhileAWatchIsSilent) {
  fakes::FakeApiServer server;
  runtime::Metrics metrics;
  {
    const Informer informer({.resource = kPods}, server, system_clock(), metrics);
    ASSERT_TRUE(eventually([&] { return server.open_watches() == 1; }));
  }
  EXPECT_EQ(server.open_watches(), 0U);
}

}  // namespace
}  // namespace sightline::reflector
