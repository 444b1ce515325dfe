// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <vector>

#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

namespace sightline::desired {

// Whether Prometheus scrapes the pods: as spec.monitoring says. Auto means: if the API server knows
// PodMonitors.
bool is_scraped(const crd::Spec& spec, bool has_pod_monitors);

// One PodMonitor (monitoring.coreos.com/v1) each for frontends, routers, workers and agents, whose
// admin ports have the metrics. They cover all revisions, which labels distinguish. Empty unless
// is_scraped().
std::vector<object::Value> pod_monitors(const RenderInput& input, bool has_pod_monitors);

}  // namespace sightline::desired
