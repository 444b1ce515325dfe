// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/disruption.h"

#include <string_view>
#include <utility>

namespace sightline::desired {

using object::Value;

namespace {

// The most frontends that may exist.
std::int64_t frontends_of(const RenderInput& input, const Sizes& sizes) {
  if (sizes.frontends) return *sizes.frontends;
  const auto& autoscaling = input.spec.frontend.autoscaling;
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

Value disruption_budget(const RenderInput& input, PodBudget budget) {
  Value object = object_of(input, {.api_version = "policy/v1",
                                   .kind = "PodDisruptionBudget",
                                   .name = std::move(budget.name),
                                   .labels = std::move(budget.labels)});
  object.set({"spec", "selector", "matchLabels"}, std::move(budget.selector));
  object.set({"spec", "maxUnavailable"}, budget.unavailable_max);
  // An unready pod may always be evicted. Otherwise it could block the drain of its node.
  object.set({"spec", "unhealthyPodEvictionPolicy"}, "AlwaysAllow");
  return object;
}

std::vector<Value> disruption_budgets(const RenderInput& input, const Sizes& sizes) {
  std::vector<Value> budgets;
  const std::int64_t most = input.spec.disruption.max_unavailable;
  const auto add = [&](std::string_view component, const std::string& pool, std::int64_t pods) {
    // A budget for as many pods would limit nothing.
    if (pods <= most) return;
    const std::string part = pool.empty() ? std::string(component) : pool;
    budgets.push_back(disruption_budget(
        input, {.name = revision_name(input.owner, input.revision, part),
                .labels = labels(input.owner, component, input.revision, pool),
                .selector = selector_labels(input.owner, component, input.revision, pool),
                .unavailable_max = most}));
  };
  add(kFrontend, {}, frontends_of(input, sizes));
  add(kRouterComponent, {}, sizes.routers);
  for (const auto& [pool, pods] : sizes.pools) add(kWorker, pool, pods);
  return budgets;
}

std::optional<Value> frontend_autoscaler(const RenderInput& input, const Sizes& sizes) {
  const auto& autoscaling = input.spec.frontend.autoscaling;
  if (!autoscaling || sizes.frontends) return std::nullopt;
  const std::string name = revision_name(input.owner, input.revision, kFrontend);
  Value object = object_of(input, {.api_version = "autoscaling/v2",
                                   .kind = "HorizontalPodAutoscaler",
                                   .name = name,
                                   .labels = labels(input.owner, kFrontend, input.revision)});
  object.set({"spec", "scaleTargetRef", "apiVersion"}, "apps/v1");
  object.set({"spec", "scaleTargetRef", "kind"}, "Deployment");
  object.set({"spec", "scaleTargetRef", "name"}, name);
  object.set({"spec", "minReplicas"}, autoscaling->min_replicas);
  object.set({"spec", "maxReplicas"}, autoscaling->max_replicas);
  object.set({"spec", "metrics"}, Value::array({cpu_metric(autoscaling->target_cpu_percent)}));
  return object;
}

}  // namespace sightline::desired
