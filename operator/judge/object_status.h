// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/clock.h"

#include "operator/crd/status.h"
#include "operator/judge/cluster_state.h"
#include "operator/judge/conditions.h"

namespace sightline::judge {

// The Deployment whose pods do not all have its latest template. Empty: all have it.
std::string rolling_of(const ClusterState& cluster);

// The progress of the roll-out to the cluster state's target. It continues from the earlier status.
// A roll-out begins when the target changes, and progresses when its step does.
crd::RolloutStatus rollout_of(const ClusterState& cluster, const plan::Plan& plan, WallTime now);

// Whether a roll-out has made no progress within spec.rollout.progressDeadline.
bool is_stuck(const ClusterState& cluster, const crd::RolloutStatus& rollout, WallTime now);

// The whole status. Version and images, which only the operator knows, come from the earlier
// status. Pure: the same cluster state gives the same status, except for the times of changes.
crd::Status status_of(const ClusterState& cluster, const Findings& findings, WallTime now);

}  // namespace sightline::judge
