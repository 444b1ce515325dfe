// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <string_view>

#include "operator/crd/status.h"
#include "operator/judge/cluster_state.h"

// How many pods and workers there are, and how many there should be. Pure.
namespace sightline::judge {

// The pods of frontends or routers: wanted in all revisions, and ready.
crd::ReadyCount ready_of(const ClusterState& cluster, std::string_view component);

// The workers of all pools: wanted by the spec, and routable in any revision.
crd::ReadyCount routable_of(const ClusterState& cluster);

// Whether a router sends requests to a worker, even if only by load. If no router answers: whether
// a worker is routable.
bool has_answering_worker(const ClusterState& cluster);

// Whether the target serves as many lent workers as this older revision, or as many as it wants if
// these are fewer. If the older revision's routers do not answer, all its lent workers count.
bool is_replaced(const ClusterState& cluster, const Stack& older);

// The replicas of a pool with a template, as the spec or the autoscaler wants.
std::int64_t wanted_of(const ClusterState& cluster, const crd::Pool& pool);

// "block size 16, transfer disabled, workers 2/2, routers 2", for events and the condition Ready.
std::string ready_text(const ClusterState& cluster);

}  // namespace sightline::judge
