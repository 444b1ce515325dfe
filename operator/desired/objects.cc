// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "operator/desired/objects.h"

#include <iterator>
#include <utility>

#include "operator/desired/access.h"
#include "operator/desired/disruption.h"
#include "operator/desired/monitors.h"
#include "operator/desired/nats.h"
#include "operator/desired/network_policy.h"
#include "operator/desired/pools.h"
#include "operator/desired/settings.h"
#include "operator/desired/workers.h"
#include "operator/desired/workloads.h"

namespace sightline::desired {

using object::Value;

namespace {

void add(std::vector<Value>& objects, std::vector<Value> more) {
  objects.insert(objects.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
}

std::int64_t size_of(const Sizes& sizes, const crd::Pool& pool) {
  const auto found = sizes.pools.find(pool.name);
  return found == sizes.pools.end() ? 0 : found->second;
}

}  // namespace

std::vector<Value> shared_objects(const Scene& scene, const Surroundings& around) {
  std::vector<Value> objects = service_accounts(scene);
  add(objects, network_policies(scene, is_scraped(scene.spec, around.has_pod_monitors)));
  add(objects, nats_objects(scene, around.nats));
  objects.push_back(client_service(scene));
  add(objects, pool_objects(scene));
  add(objects, pod_monitors(scene, around.has_pod_monitors));
  return objects;
}

std::vector<Value> revision_objects(const Scene& scene, const Sizes& sizes,
                                    const std::vector<WorkerFields>& workers,
                                    const std::vector<ForeignPod>& foreign) {
  std::vector<Value> objects = {revision_config_map(scene), live_config_map(scene, workers)};
  if (scene.chat_template) objects.push_back(template_config_map(scene));
  objects.push_back(router_service(scene));
  objects.push_back(router_deployment(scene, sizes.routers));
  for (const crd::Pool& pool : scene.spec.pools) {
    if (!pool.worker_template) continue;
    objects.push_back(pool_deployment(scene, pool, size_of(sizes, pool)));
  }
  add(objects, agent_objects(scene, foreign));
  objects.push_back(frontend_deployment(scene, sizes.frontends));
  if (auto autoscaler = frontend_autoscaler(scene, sizes)) {
    objects.push_back(std::move(*autoscaler));
  }
  add(objects, disruption_budgets(scene, sizes));
  return objects;
}

}  // namespace sightline::desired
