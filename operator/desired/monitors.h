// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

namespace sightline::desired {

// Whether Prometheus is told of the pods: as spec.monitoring says, Auto where the API server knows
// PodMonitors.
bool is_scraped(const crd::Spec& spec, bool has_pod_monitors);

// A PodMonitor (monitoring.coreos.com/v1) each of frontends, routers, workers and agents, whose
// admin ports have the metrics; of all revisions, told apart by labels. Empty unless is_scraped().
std::vector<object::Value> pod_monitors(const Scene& scene, bool has_pod_monitors);

}  // namespace sightline::desired
