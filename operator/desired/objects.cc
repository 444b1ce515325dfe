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
#include "operator/desired/pool_deployment.h"
#include "operator/desired/pools.h"
#include "operator/desired/program_settings.h"
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

std::vector<Value> shared_objects(const RenderInput& input, const ClusterFacts& deps) {
  std::vector<Value> objects = service_accounts(input);
  add(objects, network_policies(input, is_scraped(input.spec, deps.has_pod_monitors)));
  add(objects, nats_objects(input, deps.nats));
  objects.push_back(client_service(input));
  add(objects, pool_objects(input));
  add(objects, pod_monitors(input, deps.has_pod_monitors));
  return objects;
}

std::vector<Value> revision_objects(const RenderInput& input, const Sizes& sizes,
                                    const std::vector<WorkerFields>& workers,
                                    const std::vector<ForeignPod>& foreign) {
  std::vector<Value> objects = {revision_config_map(input), live_config_map(input, workers)};
  if (input.chat_template) objects.push_back(template_config_map(input));
  objects.push_back(router_service(input));
  objects.push_back(router_deployment(input, sizes.routers));
  for (const crd::Pool& pool : input.spec.pools) {
    if (!pool.worker_template) continue;
    objects.push_back(pool_deployment(input, pool, size_of(sizes, pool)));
  }
  add(objects, agent_objects(input, foreign));
  objects.push_back(frontend_deployment(input, sizes.frontends));
  if (auto autoscaler = frontend_autoscaler(input, sizes)) {
    objects.push_back(std::move(*autoscaler));
  }
  add(objects, disruption_budgets(input, sizes));
  return objects;
}

}  // namespace sightline::desired
