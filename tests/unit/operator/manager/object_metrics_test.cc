// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/manager/object_metrics.h"

#include <gtest/gtest.h>

namespace sightline::manager {
namespace {

using crd::ConditionStatus;
using crd::RolloutPhase;

crd::Status status_of(RolloutPhase phase, ConditionStatus ready) {
  crd::Status status;
  status.rollout.phase = phase;
  status.conditions = {{.type = "Ready", .status = ready}};
  status.pools = {{.name = "a", .desired = 3, .ready = 2, .routable = 1},
                  {.name = "b", .desired = 1, .ready = 1, .routable = 1}};
  return status;
}

class ObjectMetricsTest : public testing::Test {
 protected:
  [[nodiscard]] bool says(const std::string& line) const {
    return metrics_.scrape().find("\n" + line + "\n") != std::string::npos;
  }
  [[nodiscard]] bool mentions(const std::string& text) const {
    return metrics_.scrape().find(text) != std::string::npos;
  }

  runtime::Metrics metrics_;
  ObjectMetrics objects_{metrics_};
};

TEST_F(ObjectMetricsTest, PhasesAreThereBeforeTheFirstObject) {
  EXPECT_TRUE(says(R"(sightline_operator_objects{phase="Stuck"} 0)"));
}

TEST_F(ObjectMetricsTest, AnObjectShowsWhatItsStatusSays) {
  const auto status = status_of(RolloutPhase::Stuck, ConditionStatus::False);
  objects_.tell({"here", "vision"}, &status);
  EXPECT_TRUE(says(R"(sightline_operator_objects{phase="Stuck"} 1)"));
  EXPECT_TRUE(
      says(R"(sightline_operator_objects_by_condition{condition="Ready",status="False"} 1)"));
  EXPECT_TRUE(
      says(R"(sightline_operator_objects_by_condition{condition="Ready",status="True"} 0)"));
  const std::string of = R"(router_namespace="here",router="vision")";
  EXPECT_TRUE(says("sightline_operator_object_ready{" + of + "} 0"));
  EXPECT_TRUE(says("sightline_operator_object_rollout_stuck{" + of + "} 1"));
  EXPECT_TRUE(says("sightline_operator_object_workers{" + of + R"(,state="desired"} 4)"));
  EXPECT_TRUE(says("sightline_operator_object_workers{" + of + R"(,state="ready"} 3)"));
  EXPECT_TRUE(says("sightline_operator_object_workers{" + of + R"(,state="routable"} 2)"));
}

TEST_F(ObjectMetricsTest, ALaterVerdictReplacesTheOneBefore) {
  const auto stuck = status_of(RolloutPhase::Stuck, ConditionStatus::False);
  const auto well = status_of(RolloutPhase::Completed, ConditionStatus::True);
  objects_.tell({"here", "vision"}, &stuck);
  EXPECT_TRUE(says(R"(sightline_operator_objects{phase="Stuck"} 1)"));
  objects_.tell({"here", "vision"}, &well);
  EXPECT_TRUE(says(R"(sightline_operator_objects{phase="Stuck"} 0)"));
  EXPECT_TRUE(says(R"(sightline_operator_objects{phase="Completed"} 1)"));
  EXPECT_TRUE(
      says(R"(sightline_operator_objects_by_condition{condition="Ready",status="False"} 0)"));
  EXPECT_TRUE(
      says(R"(sightline_operator_object_ready{router_namespace="here",router="vision"} 1)"));
}

TEST_F(ObjectMetricsTest, ASuspendedObjectIsNotCalledUnready) {
  const auto well = status_of(RolloutPhase::Completed, ConditionStatus::True);
  const auto suspended = status_of(RolloutPhase::Idle, ConditionStatus::False);
  const std::string series =
      R"(sightline_operator_object_ready{router_namespace="here",router="vision"})";
  objects_.tell({"here", "vision"}, &well);
  EXPECT_TRUE(mentions(series));
  objects_.tell({"here", "vision"}, &suspended);
  EXPECT_FALSE(mentions(series));
  EXPECT_TRUE(mentions("sightline_operator_object_workers"));
}

TEST_F(ObjectMetricsTest, AnObjectThatIsGoneLeavesNoSeries) {
  const auto well = status_of(RolloutPhase::Completed, ConditionStatus::True);
  objects_.tell({"here", "vision"}, &well);
  EXPECT_TRUE(mentions("vision"));
  objects_.tell({"here", "vision"}, nullptr);
  EXPECT_FALSE(mentions("vision"));
  EXPECT_TRUE(says(R"(sightline_operator_objects{phase="Completed"} 0)"));
}

TEST_F(ObjectMetricsTest, CountsObjectsAboveTheLimitWithoutMixingThem) {
  const auto well = status_of(RolloutPhase::Completed, ConditionStatus::True);
  const std::size_t count = ObjectMetrics::kShownMax + 1;
  for (std::size_t i = 0; i < count; ++i) {
    objects_.tell({"here", "object-" + std::to_string(10'000 + i)}, &well);
  }
  EXPECT_TRUE(says(R"(sightline_operator_objects{phase="Completed"} )" + std::to_string(count)));
  EXPECT_FALSE(mentions(R"(="other")"));
  EXPECT_FALSE(mentions("object-" + std::to_string(10'000 + count - 1)));
  EXPECT_TRUE(
      mentions(R"(sightline_metric_overflow_total{metric="sightline_operator_object_ready"})"));
}

}  // namespace
}  // namespace sightline::manager
