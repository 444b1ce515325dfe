// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/operator/judge/worlds.h"

namespace sightline::judge {
namespace {

Pod pod_of(const std::string& name, const std::string& component, const std::string& revision) {
  Pod pod;
  pod.name = name;
  pod.uid = "uid-" + name;
  pod.ip = "10.0.0.1";
  pod.component = component;
  pod.revision = revision;
  pod.is_ready = true;
  return pod;
}

Deployment deployment_of(const std::string& component, const std::string& pool) {
  Deployment deployment;
  deployment.name = "shop-aaa-" + (pool.empty() ? component : pool);
  deployment.component = component;
  deployment.revision = "aaa";
  deployment.pool = pool;
  deployment.wanted = deployment.pods = deployment.updated = deployment.ready = 2;
  deployment.is_observed = true;
  return deployment;
}

}  // namespace

Pod worker_pod(const std::string& name, const std::string& revision) {
  Pod pod = pod_of(name, "worker", revision);
  pod.pool = "gpu";
  pod.routable = true;
  return pod;
}

WorkerReport admitted() { return {.state = "ready", .is_ready = true, .reason = {}}; }

RouterReport router_report(const std::string& pod, const std::string& revision) {
  RouterReport report{.pod = pod, .revision = revision, .problem = {}};
  report.is_ready = true;
  report.workers = {{"w0", admitted()}, {"w1", admitted()}};
  return report;
}

World healthy_world() {
  World world;
  world.name_space = "prod";
  world.name = "shop";
  world.uid = "uid-shop";
  world.generation = 3;
  world.spec.model.name = "demo";
  world.spec.frontend.replicas = 2;
  crd::Pool pool;
  pool.name = "gpu";
  pool.replicas = 2;
  pool.worker_template.emplace();
  world.spec.pools = {pool};
  world.target = "aaa";
  world.stacks = {{"aaa", world.spec}};
  world.pods = {pod_of("f0", "frontend", "aaa"), pod_of("f1", "frontend", "aaa"),
                pod_of("r0", "router", "aaa"),   pod_of("r1", "router", "aaa"),
                worker_pod("w0", "aaa"),         worker_pod("w1", "aaa")};
  world.deployments = {deployment_of("worker", "gpu"), deployment_of("router", {}),
                       deployment_of("frontend", {})};
  world.routers = {router_report("r0", "aaa"), router_report("r1", "aaa")};
  return world;
}

}  // namespace sightline::judge
