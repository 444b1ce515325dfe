// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/crd/enums.h"
#include "operator/crd/model_spec.h"

// Pools of workers. Paths in comments are those of the CRD, see spec.h.
namespace sightline::crd {

// spec.pools[].autoscaling.
struct PoolAutoscaling {
  std::int64_t min_replicas = 1;
  std::int64_t max_replicas = 1;
  bool operator==(const PoolAutoscaling&) const = default;
};

// spec.pools[].template.env[].
struct EnvVar {
  std::string name;
  std::string value;
  Opaque value_from;
  bool operator==(const EnvVar&) const = default;
};

// spec.pools[].template.parallelism.
struct Parallelism {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  bool operator==(const Parallelism&) const = default;
};

// spec.pools[].template: workers that the operator runs.
struct WorkerTemplate {
  std::string image;
  PullPolicy image_pull_policy = PullPolicy::IfNotPresent;
  std::vector<std::string> args;
  std::vector<EnvVar> env;
  std::optional<std::int64_t> gpus;
  std::string gpu_resource = "nvidia.com/gpu";
  Parallelism parallelism;
  std::string shared_memory = "8Gi";
  std::string startup_timeout = "30m";
  Resources resources;
  Opaque pod_template;
  bool operator==(const WorkerTemplate&) const = default;
};

// spec.pools[].selector: pods that others run.
struct PodSelector {
  std::map<std::string, std::string> match_labels;
  std::int64_t port = 8000;
  std::optional<std::int64_t> events_port;
  std::optional<std::int64_t> replay_port;
  bool operator==(const PodSelector&) const = default;
};

// spec.pools[].endpoints[]: a worker outside of the cluster, or with an address of its own.
struct Endpoint {
  std::string name;
  std::string url;
  std::string events;
  std::string replay;
  bool operator==(const Endpoint&) const = default;
};

// spec.pools[].
struct Pool {
  std::string name;
  Backend backend = Backend::Vllm;
  Role role = Role::Aggregated;
  std::optional<std::int64_t> replicas;
  std::optional<PoolAutoscaling> autoscaling;
  std::optional<std::int64_t> block_size;
  // Exactly one of these three is given.
  std::optional<WorkerTemplate> worker_template;
  std::optional<PodSelector> selector;
  std::vector<Endpoint> endpoints;
  bool operator==(const Pool&) const = default;
};

}  // namespace sightline::crd
