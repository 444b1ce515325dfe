// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/disruption.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

using object::Value;

// The parts of the revision that have a budget.
std::set<std::string> budgets(const crd::Spec& spec, const Sizes& sizes) {
  const RenderInput input = test::render_input_of(spec);
  const std::size_t before = revision_name(input.owner, input.revision, "").size();
  std::set<std::string> parts;
  for (const Value& budget : disruption_budgets(input, sizes)) {
    parts.insert(std::string(budget.at({"metadata", "name"}).text()).substr(before));
    EXPECT_EQ(budget.at({"spec", "unhealthyPodEvictionPolicy"}).text(), "AlwaysAllow");
    EXPECT_EQ(budget.at({"spec", "maxUnavailable"}).integer(), spec.disruption.max_unavailable);
  }
  return parts;
}

using Parts = std::set<std::string>;

TEST(Disruption, WhatHasOnePodHasNoBudget) {
  const crd::Spec spec = test::small_spec();
  EXPECT_EQ(budgets(spec, {.frontends = 1, .routers = 1, .pools = {{"a", 1}}}), Parts{});
  EXPECT_EQ(budgets(spec, {.frontends = 2, .routers = 3, .pools = {{"a", 2}, {"b", 1}}}),
            (Parts{"frontend", "router", "a"}));
}

TEST(Disruption, ABudgetThatWouldNeverHinderIsNotMade) {
  crd::Spec spec = test::small_spec();
  spec.disruption.max_unavailable = 3;
  EXPECT_EQ(budgets(spec, {.frontends = 3, .routers = 4, .pools = {}}), Parts{"router"});
}

TEST(Disruption, WhoForbidsEveryEvictionForbidsThatOfASinglePod) {
  crd::Spec spec = test::small_spec();
  spec.disruption.max_unavailable = 0;
  EXPECT_EQ(budgets(spec, {.frontends = 1, .routers = 0, .pools = {}}), Parts{"frontend"});
}

TEST(Disruption, ScaledFrontendsCountAsManyAsTheyMayBecome) {
  crd::Spec spec = test::small_spec();
  spec.frontend.autoscaling = crd::FrontendAutoscaling{.min_replicas = 1, .max_replicas = 5};
  EXPECT_EQ(budgets(spec, {.frontends = {}, .routers = 1, .pools = {}}), Parts{"frontend"});
}

TEST(Disruption, AutoscalerExistsUnlessTheSizesGiveTheNumber) {
  crd::Spec spec = test::small_spec();
  EXPECT_FALSE(frontend_autoscaler(test::render_input_of(spec), {}));
  spec.frontend.autoscaling = crd::FrontendAutoscaling{.min_replicas = 2, .max_replicas = 5};
  const RenderInput input = test::render_input_of(spec);
  EXPECT_FALSE(frontend_autoscaler(input, {.frontends = 0, .routers = 0, .pools = {}}))
      << "suspended";
  const auto made = frontend_autoscaler(input, {});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->at({"spec", "scaleTargetRef", "name"}).text(),
            revision_name(input.owner, input.revision, "frontend"));
  EXPECT_EQ(made->at({"spec", "minReplicas"}).integer(), 2);
  EXPECT_EQ(made->at({"spec", "maxReplicas"}).integer(), 5);
}

}  // namespace
}  // namespace sightline::desired
