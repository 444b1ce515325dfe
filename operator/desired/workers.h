// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

namespace sightline::desired {

// The workers of a pool with a template: an engine and, beside it, an agent that outlives it. The
// engine ends once the agent has told routers to send it nothing more and its requests are done, or
// spec.rollout.drainTimeout is over. The engine's container has the model, a scratch folder and
// shared memory, and none of the agent's secrets. A pod is ready once its engine is and routers
// have admitted it, which the gate sightline.dev/routable says.
object::Value pool_deployment(const Scene& scene, const crd::Pool& pool, std::int64_t replicas);

}  // namespace sightline::desired
