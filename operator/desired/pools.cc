// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/pools.h"

#include <algorithm>

namespace sightline::desired {

using object::Value;

Value pool_object(const RenderInput& input, const crd::Pool& pool) {
  Value object = object_of(input, {.api_version = "sightline.dev/v1alpha1",
                                   .kind = "MultimodalRouterPool",
                                   .name = shared_name(input.owner, pool.name),
                                   .labels = labels(input.owner, kWorker, {}, pool.name)});
  object.set({"spec", "router"}, input.owner.name);
  object.set({"spec", "pool"}, pool.name);
  const crd::PoolAutoscaling bounds = pool.autoscaling.value_or(crd::PoolAutoscaling{});
  object.set({"spec", "minReplicas"}, bounds.min_replicas);
  object.set({"spec", "maxReplicas"}, bounds.max_replicas);
  return object;
}

Value pool_object_of(const RenderInput& input, const crd::Pool& pool, std::int64_t replicas) {
  const crd::PoolAutoscaling bounds = pool.autoscaling.value_or(crd::PoolAutoscaling{});
  Value object = pool_object(input, pool);
  object.set({"spec", "replicas"}, std::clamp(replicas, bounds.min_replicas, bounds.max_replicas));
  return object;
}

std::vector<Value> pool_objects(const RenderInput& input) {
  std::vector<Value> objects;
  for (const crd::Pool& pool : input.spec.pools) {
    if (pool.worker_template && pool.autoscaling) objects.push_back(pool_object(input, pool));
  }
  return objects;
}

}  // namespace sightline::desired
