// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/disruption.h"

#include <string_view>
#include <utility>

namespace sightline::desired {

using object::Value;

namespace {

// The most frontends that may exist.
std::int64_t frontends_of(const Scene& scene, const Sizes& sizes) {
  if (sizes.frontends) return *sizes.frontends;
  const auto& autoscaling = scene.spec.frontend.autoscaling;
  return autoscaling ? autoscaling->max_replicas : 0;
}

Value cpu_metric(std::int64_t percent) {
  Value metric = Value::object({{"type", "Resource"}});
  metric.set({"resource", "name"}, "cpu");
  metric.set({"resource", "target", "type"}, "Utilization");
  metric.set({"resource", "target", "averageUtilization"}, percent);
  return metric;
}

}  // namespace

Value disruption_budget(const Scene& scene, Budget budget) {
  Value object = object_of(scene, {.api_version = "policy/v1",
                                   .kind = "PodDisruptionBudget",
                                   .name = std::move(budget.name),
                                   .labels = std::move(budget.labels)});
  object.set({"spec", "selector", "matchLabels"}, std::move(budget.selector));
  object.set({"spec", "maxUnavailable"}, budget.unavailable_max);
  // An unready pod may always be evicted. Otherwise it could block the drain of its node.
  object.set({"spec", "unhealthyPodEvictionPolicy"}, "AlwaysAllow");
  return object;
}

std::vector<Value> disruption_budgets(const Scene& scene, const Sizes& sizes) {
  std::vector<Value> budgets;
  const std::int64_t most = scene.spec.disruption.max_unavailable;
  const auto add = [&](std::string_view component, const std::string& pool, std::int64_t pods) {
    // A budget for as many pods would limit nothing.
    if (pods <= most) return;
    const std::string part = pool.empty() ? std::string(component) : pool;
    budgets.push_back(disruption_budget(
        scene, {.name = revision_name(scene.owner, scene.revision, part),
                .labels = labels(scene.owner, component, scene.revision, pool),
                .selector = selector_labels(scene.owner, component, scene.revision, pool),
                .unavailable_max = most}));
  };
  add(kFrontend, {}, frontends_of(scene, sizes));
  add(kRouterComponent, {}, sizes.routers);
  for (const auto& [pool, pods] : sizes.pools) add(kWorker, pool, pods);
  return budgets;
}

std::optional<Value> frontend_autoscaler(const Scene& scene, const Sizes& sizes) {
  const auto& autoscaling = scene.spec.frontend.autoscaling;
  if (!autoscaling || sizes.frontends) return std::nullopt;
  const std::string name = revision_name(scene.owner, scene.revision, kFrontend);
  Value object = object_of(scene, {.api_version = "autoscaling/v2",
                                   .kind = "HorizontalPodAutoscaler",
                                   .name = name,
                                   .labels = labels(scene.owner, kFrontend, scene.revision)});
  object.set({"spec", "scaleTargetRef", "apiVersion"}, "apps/v1");
  object.set({"spec", "scaleTargetRef", "kind"}, "Deployment");
  object.set({"spec", "scaleTargetRef", "name"}, name);
  object.set({"spec", "minReplicas"}, autoscaling->min_replicas);
  object.set({"spec", "maxReplicas"}, autoscaling->max_replicas);
  object.set({"spec", "metrics"}, Value::array({cpu_metric(autoscaling->target_cpu_percent)}));
  return object;
}

}  // namespace sightline::desired
