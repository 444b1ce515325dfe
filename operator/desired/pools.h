// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <vector>

#include "operator/desired/scene.h"
#include "operator/kube/object/value.h"

// MultimodalRouterPools: one for each pool whose replicas somebody else sets.
namespace sightline::desired {

// As it is applied, NAME-POOL: without replicas, which belong to who scales it.
object::Value pool_object(const Scene& scene, const crd::Pool& pool);
// As it is created, or merged where its replicas are outside of what the pool allows now: with the
// next number within. Never applied: a field that was applied once and is left out is gone.
object::Value pool_object_of(const Scene& scene, const crd::Pool& pool, std::int64_t replicas);

// Those of all pools with autoscaling, as they are applied.
std::vector<object::Value> pool_objects(const Scene& scene);

}  // namespace sightline::desired
