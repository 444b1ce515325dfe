// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include "common/base/clock.h"

#include "operator/crd/status.h"
#include "operator/judge/conditions.h"
#include "operator/judge/world.h"

namespace sightline::judge {

// Which Deployment's pods are not all as it says by now; empty: they all are.
std::string rolling_of(const World& world);

// How far the roll-out to the world's target is, from what the status said before. It begins when
// the target changes and makes progress when its step does.
crd::RolloutStatus rollout_of(const World& world, const plan::Plan& plan, WallTime now);

// Whether a roll-out has made no progress within spec.rollout.progressDeadline.
bool is_stuck(const World& world, const crd::RolloutStatus& rollout, WallTime now);

// The whole status. What only this operator knows (version, images) is taken from the one before.
// Pure: the same world gives the same status, but for the times at which something changed.
crd::Status status_of(const World& world, const Findings& findings, WallTime now);

}  // namespace sightline::judge
