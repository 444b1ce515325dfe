// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/monitors.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/desired/render_inputs.h"

namespace sightline::desired {
namespace {

TEST(Monitors, AutoIsAsTheApiServerIs) {
  crd::Spec spec = test::small_spec();
  EXPECT_TRUE(is_scraped(spec, true));
  EXPECT_FALSE(is_scraped(spec, false));
  spec.monitoring.pod_monitor = crd::PodMonitor::Enabled;
  EXPECT_TRUE(is_scraped(spec, false));
  spec.monitoring.pod_monitor = crd::PodMonitor::Disabled;
  EXPECT_FALSE(is_scraped(spec, true));
  EXPECT_TRUE(pod_monitors(test::render_input_of(spec), true).empty());
}

TEST(Monitors, EachReadsAdminPortsAsOftenAsTheSpecSays) {
  crd::Spec spec = test::small_spec();
  spec.monitoring.interval = "7s";
  const auto monitors = pod_monitors(test::render_input_of(spec), true);
  EXPECT_EQ(monitors.size(), 4U);
  for (const object::Value& monitor : monitors) {
    const object::Value& endpoint = monitor.at({"spec", "podMetricsEndpoints"}).items().at(0);
    EXPECT_EQ(endpoint["port"].text(), "admin");
    EXPECT_EQ(endpoint["interval"].text(), "7s");
  }
}

TEST(Monitors, EnginesAreReadTooUnlessAPolicyClosesTheirPort) {
  crd::Spec spec = test::small_spec();
  const auto ports = [&spec] {
    std::string found;
    for (const object::Value& monitor : pod_monitors(test::render_input_of(spec), true)) {
      for (const auto& one : monitor.at({"spec", "podMetricsEndpoints"}).items()) {
        found += std::string(one["port"].text()) + ' ';
      }
    }
    return found;
  };
  EXPECT_EQ(ports(), "admin admin admin admin ");
  spec.network_policy.enabled = false;
  EXPECT_EQ(ports(), "admin admin admin http admin ");
}

TEST(Monitors, AUsersLabelsDoNotReplaceOurs) {
  crd::Spec spec = test::small_spec();
  spec.monitoring.labels = {{"release", "prometheus"}, {std::string(kRouterLabel), "other"}};
  const auto labels =
      pod_monitors(test::render_input_of(spec), true).at(0).at({"metadata", "labels"});
  EXPECT_EQ(labels["release"].text(), "prometheus");
  EXPECT_EQ(labels[kRouterLabel].text(), "shop");
}

}  // namespace
}  // namespace sightline::desired
