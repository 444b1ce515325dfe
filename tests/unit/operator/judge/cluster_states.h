// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>

#include "operator/judge/cluster_state.h"

namespace sightline::judge {

// Two workers, two routers and two frontends of revision "aaa", all healthy.
ClusterState healthy_world();

Pod worker_pod(const std::string& name, const std::string& revision);
RouterReport router_report(const std::string& pod, const std::string& revision);
// The report of a router that has admitted the worker.
WorkerReport admitted();

}  // namespace sightline::judge
