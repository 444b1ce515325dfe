// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// How many pods of a revision exist at least, during evictions and under load.
namespace sightline::desired {

// What a PodDisruptionBudget protects.
struct PodBudget {
  std::string name;
  object::Value labels;
  // Selects its pods by labels.
  object::Value selector;
  std::int64_t unavailable_max = 1;
};
// A PodDisruptionBudget. It never protects pods that are not ready, so these do not block the drain
// of a node.
object::Value disruption_budget(const RenderInput& input, PodBudget budget);

// One budget each for frontends, for routers and for each pool with a template. It needs more pods
// than spec.disruption.maxUnavailable: with fewer, a budget would never prevent an eviction.
std::vector<object::Value> disruption_budgets(const RenderInput& input, const Sizes& sizes);

// The HorizontalPodAutoscaler of the revision's frontends. Nothing if the spec has no autoscaling,
// or if `sizes` gives their number.
std::optional<object::Value> frontend_autoscaler(const RenderInput& input, const Sizes& sizes);

}  // namespace sightline::desired
