// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/workloads.h"

#include <string>

#include <gtest/gtest.h>

#include "operator/desired/pool_deployment.h"
#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

using object::Value;

TEST(Workloads, FrontendsWithoutANumberLeaveItToWhoScalesThem) {
  const RenderInput input = test::render_input_of(test::small_spec());
  EXPECT_TRUE(frontend_deployment(input, std::nullopt).at({"spec", "replicas"}).is_null());
  EXPECT_EQ(frontend_deployment(input, 3).at({"spec", "replicas"}).integer(), 3);
}

TEST(Workloads, WhatIsScaledByCpuHasARequestForIt) {
  const auto request = [](const crd::Spec& spec, std::optional<std::int64_t> replicas) {
    const Value made = frontend_deployment(test::render_input_of(spec), replicas);
    return std::string(
        test::container_of(made, "frontend").at({"resources", "requests", "cpu"}).text());
  };
  crd::Spec spec = test::small_spec();
  EXPECT_EQ(request(spec, 2), "");
  EXPECT_EQ(request(spec, std::nullopt), "1");
  spec.frontend.resources.requests["cpu"] = "250m";
  EXPECT_EQ(request(spec, std::nullopt), "250m");
}

TEST(Workloads, ChangedLiveSettingsKeepThePods) {
  crd::Spec spec = test::small_spec();
  const Value routers = router_deployment(test::render_input_of(spec), 2);
  const Value frontends = frontend_deployment(test::render_input_of(spec), 2);
  const Value workers = pool_deployment(test::render_input_of(spec), spec.pools[0], 2);
  spec.multimodal.images_max = 1;
  spec.router.policy = crd::Policy::Random;
  spec.log_level = crd::LogLevel::Debug;
  spec.frontend.service.port = 9;
  spec.frontend.concurrent_requests_max = 1;
  spec.monitoring.interval = "1s";
  EXPECT_TRUE(router_deployment(test::render_input_of(spec), 2) == routers);
  EXPECT_TRUE(frontend_deployment(test::render_input_of(spec), 2) == frontends);
  EXPECT_TRUE(pool_deployment(test::render_input_of(spec), spec.pools[0], 2) == workers);
}

TEST(Workloads, RouterButNoFrontendIsReadyBeforeItsEngines) {
  const RenderInput input = test::render_input_of(test::small_spec());
  const auto path = [](const Value& workload, std::string_view name) {
    return std::string(
        test::container_of(workload, name).at({"readinessProbe", "httpGet", "path"}).text());
  };
  EXPECT_EQ(path(router_deployment(input, 1), "router"), "/readyz?exclude=engines");
  EXPECT_EQ(path(frontend_deployment(input, 1), "frontend"), "/readyz");
}

TEST(Workloads, TheClientsServiceIsBeforeTheFrontendsOfAllRevisions) {
  crd::Spec spec = test::small_spec();
  const Value before = client_service(test::render_input_of(spec));
  EXPECT_EQ(before.at({"metadata", "name"}).text(), "shop");
  spec.kv.block_size = 32;
  EXPECT_TRUE(client_service(test::render_input_of(spec)) == before);
}

TEST(Workloads, RoutersAreFoundEachByItself) {
  const RenderInput input = test::render_input_of(test::small_spec());
  const Value service = router_service(input);
  EXPECT_EQ(service.at({"spec", "clusterIP"}).text(), "None");
  EXPECT_EQ(service.at({"spec", "selector", kRevisionLabel}).text(), input.revision);
}

TEST(Workloads, ARestartReplacesEveryPod) {
  crd::Spec spec = test::small_spec();
  spec.restart = "again";
  for (const Value& object : test::all_objects(test::render_input_of(spec))) {
    const Value& pod = object.at({"spec", "template"});
    if (pod.is_null()) continue;
    EXPECT_EQ(pod.at({"metadata", "annotations", kRestartAnnotation}).text(), "again")
        << object.at({"metadata", "name"}).text();
  }
}

}  // namespace
}  // namespace sightline::desired
