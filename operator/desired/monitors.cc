// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/monitors.h"

#include <array>
#include <string_view>
#include <utility>

namespace sightline::desired {

using object::Value;

namespace {

constexpr std::array kScraped = {kFrontend, kRouterComponent, kWorker, kAgent};

Value endpoint(const RenderInput& input, std::string_view port) {
  return Value::object(
      {{"port", port}, {"path", "/metrics"}, {"interval", input.spec.monitoring.interval}});
}

// Engines export their own hit rate. If a network policy closes their port, no scrape is possible.
Value endpoints(const RenderInput& input, std::string_view component) {
  Value all = Value::array({endpoint(input, "admin")});
  if (component == kWorker && !input.spec.network_policy.enabled) {
    all.append(endpoint(input, "http"));
  }
  return all;
}

Value monitor(const RenderInput& input, std::string_view component) {
  Value with_users = Value::object();
  for (const auto& [name, value] : input.spec.monitoring.labels) with_users.member(name) = value;
  // Our labels replace those of users.
  with_users.merge(labels(input.owner, component, {}));
  Value object = object_of(input, {.api_version = "monitoring.coreos.com/v1",
                                   .kind = "PodMonitor",
                                   .name = shared_name(input.owner, component),
                                   .labels = std::move(with_users)});
  object.set({"spec", "selector", "matchLabels"}, selector_labels(input.owner, component, {}));
  object.set({"spec", "podTargetLabels"},
             Value::array({kRouterLabel, kRevisionLabel, kPoolLabel, kComponentLabel}));
  object.set({"spec", "podMetricsEndpoints"}, endpoints(input, component));
  return object;
}

}  // namespace

bool is_scraped(const crd::Spec& spec, bool has_pod_monitors) {
  switch (spec.monitoring.pod_monitor) {
    case crd::PodMonitor::Auto:
      return has_pod_monitors;
    case crd::PodMonitor::Enabled:
      return true;
    case crd::PodMonitor::Disabled:
      return false;
  }
  return false;
}

std::vector<Value> pod_monitors(const RenderInput& input, bool has_pod_monitors) {
  if (!is_scraped(input.spec, has_pod_monitors)) return {};
  std::vector<Value> monitors;
  for (const std::string_view component : kScraped) monitors.push_back(monitor(input, component));
  return monitors;
}

}  // namespace sightline::desired
