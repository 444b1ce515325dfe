// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <vector>

#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// MultimodalRouterPools: one for each pool whose replicas an autoscaler sets.
namespace sightline::desired {

// The object NAME-POOL as it is applied: without replicas, which belong to the autoscaler.
object::Value pool_object(const RenderInput& input, const crd::Pool& pool);
// The object as it is created, or merged if the pool does not allow its present replicas: with the
// nearest allowed number. Never apply it: a field that was applied once and is then left out would
// be removed.
object::Value pool_object_of(const RenderInput& input, const crd::Pool& pool,
                             std::int64_t replicas);

// The objects of all pools with autoscaling, as they are applied.
std::vector<object::Value> pool_objects(const RenderInput& input);

}  // namespace sightline::desired
