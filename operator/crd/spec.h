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
#include "operator/crd/pool_spec.h"

// The spec of a MultimodalRouter as values. crds/sightline.dev_multimodalrouters.yaml defines
// meaning, ranges and defaults. The API server fills in its defaults before a program reads the
// object. The defaults here are for objects that never were in an API server. Paths in comments are
// those of the CRD.
namespace sightline::crd {

// spec.frontend.autoscaling.
struct FrontendAutoscaling {
  std::int64_t min_replicas = 1;
  std::int64_t max_replicas = 1;
  std::int64_t target_cpu_percent = 70;
  bool operator==(const FrontendAutoscaling&) const = default;
};

// spec.frontend.service: the Service for clients.
struct ClientService {
  ServiceType type = ServiceType::ClusterIp;
  std::int64_t port = 8000;
  std::map<std::string, std::string> annotations;
  bool operator==(const ClientService&) const = default;
};

// spec.frontend.
struct Frontend {
  std::optional<std::int64_t> replicas;
  std::optional<FrontendAutoscaling> autoscaling;
  ClientService service;
  std::int64_t concurrent_requests_max = 4096;
  Resources resources;
  Opaque pod_template;
  bool operator==(const Frontend&) const = default;
};

// spec.router.weights.
struct Weights {
  std::string overlap_credit = "1";
  std::string host_credit = "0.75";
  std::string disk_credit = "0.25";
  std::string prefill_load_scale = "1";
  std::string decode_load_scale = "1";
  bool operator==(const Weights&) const = default;
};

// spec.router.
struct Router {
  std::int64_t replicas = 2;
  Policy policy = Policy::Kv;
  Weights weights;
  std::string stale_after = "5s";
  std::string request_timeout = "10m";
  Resources resources;
  Opaque pod_template;
  bool operator==(const Router&) const = default;
};

// spec.nats.managed: NATS servers that the operator runs.
struct ManagedNats {
  std::int64_t replicas = 1;
  std::string image;
  Resources resources;
  Opaque pod_template;
  bool operator==(const ManagedNats&) const = default;
};

// spec.nats.external: NATS servers that others run.
struct ExternalNats {
  std::vector<std::string> urls;
  std::optional<SecretRef> credentials_secret;
  std::optional<SecretRef> ca_secret;
  bool operator==(const ExternalNats&) const = default;
};

// spec.nats: one of the two.
struct Nats {
  std::optional<ManagedNats> managed;
  std::optional<ExternalNats> external;
  bool operator==(const Nats&) const = default;
};

// spec.agents: the agents of workers that others run.
struct Agents {
  Opaque pod_template;
  bool operator==(const Agents&) const = default;
};

// spec.rollout.
struct Rollout {
  Strategy strategy = Strategy::Rolling;
  std::int64_t max_surge = 0;
  std::int64_t max_unavailable = 1;
  std::string drain_timeout = "2m";
  std::string progress_deadline = "30m";
  bool paused = false;
  bool operator==(const Rollout&) const = default;
};

// spec.disruption.
struct Disruption {
  std::int64_t max_unavailable = 1;
  bool operator==(const Disruption&) const = default;
};

// spec.networkPolicy.
struct NetworkPolicy {
  bool enabled = true;
  bool operator==(const NetworkPolicy&) const = default;
};

// spec.monitoring.
struct Monitoring {
  PodMonitor pod_monitor = PodMonitor::Auto;
  std::string interval = "30s";
  std::map<std::string, std::string> labels;
  bool operator==(const Monitoring&) const = default;
};

// spec.imagePullSecrets[].
struct PullSecret {
  std::string name;
  bool operator==(const PullSecret&) const = default;
};

// spec.
struct Spec {
  Model model;
  Kv kv;
  Multimodal multimodal;
  Transfer transfer;
  Frontend frontend;
  Router router;
  std::vector<Pool> pools;
  Nats nats;
  Agents agents;
  Rollout rollout;
  Disruption disruption;
  NetworkPolicy network_policy;
  Monitoring monitoring;
  LogLevel log_level = LogLevel::Info;
  std::string image;
  PullPolicy image_pull_policy = PullPolicy::IfNotPresent;
  std::vector<PullSecret> image_pull_secrets;
  PodUser pod_user = PodUser::Fixed;
  std::string version;
  std::string restart;
  bool suspend = false;
  bool operator==(const Spec&) const = default;
};

}  // namespace sightline::crd
