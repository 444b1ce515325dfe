// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

// How many pods of a revision there are at least, whatever comes: evictions, load.
namespace sightline::desired {

struct Budget {
  std::string name;
  object::Value labels;
  object::Value selector;  // of its pods, by labels
  std::int64_t unavailable_max = 1;
};
// A PodDisruptionBudget. Pods that are not ready never keep a node from being drained.
object::Value disruption_budget(const Scene& scene, Budget budget);

// One of frontends, of routers and of each pool with a template that has more pods than
// spec.disruption.maxUnavailable: with fewer it would never hinder an eviction.
std::vector<object::Value> disruption_budgets(const Scene& scene, const Sizes& sizes);

// The HorizontalPodAutoscaler of the revision's frontends; none if the spec asks for none, or their
// number is said here.
std::optional<object::Value> frontend_autoscaler(const Scene& scene, const Sizes& sizes);

}  // namespace sightline::desired
