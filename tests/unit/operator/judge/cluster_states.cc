// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#include "tests/unit/operator/judge/cluster_states.h"

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

ClusterState healthy_world() {
  ClusterState cluster;
  cluster.name_space = "prod";
  cluster.name = "shop";
  cluster.uid = "uid-shop";
  cluster.generation = 3;
  cluster.spec.model.name = "demo";
  cluster.spec.frontend.replicas = 2;
  crd::Pool pool;
  pool.name = "gpu";
  pool.replicas = 2;
  pool.worker_template.emplace();
  cluster.spec.pools = {pool};
  cluster.target = "aaa";
  cluster.stacks = {{"aaa", cluster.spec}};
  cluster.pods = {pod_of("f0", "frontend", "aaa"), pod_of("f1", "frontend", "aaa"),
                  pod_of("r0", "router", "aaa"),   pod_of("r1", "router", "aaa"),
                  worker_pod("w0", "aaa"),         worker_pod("w1", "aaa")};
  cluster.deployments = {deployment_of("worker", "gpu"), deployment_of("router", {}),
                         deployment_of("frontend", {})};
  cluster.routers = {router_report("r0", "aaa"), router_report("r1", "aaa")};
  return cluster;
}

}  // namespace sightline::judge
