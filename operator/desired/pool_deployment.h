// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>

#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

namespace sightline::desired {

// The Deployment of a pool with a template: an engine and, beside it, an agent that outlives it.
// The engine ends when the agent has made routers stop sending requests and its requests are done,
// or when spec.rollout.drainTimeout is over. The engine's container has the model, a scratch folder
// and shared memory, but no secrets of the agent. A pod is ready when its engine is ready and
// routers have admitted it, which the readiness gate sightline.dev/routable shows.
object::Value pool_deployment(const RenderInput& input, const crd::Pool& pool,
                              std::int64_t replicas);

}  // namespace sightline::desired
