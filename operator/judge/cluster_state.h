// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/crd/spec.h"
#include "operator/crd/status.h"
#include "operator/kube/object/value.h"

// The state of one MultimodalRouter at one moment: the objects of the API server and the reports of
// its routers. Values only. The other headers of this folder judge it.
namespace sightline::judge {

// A pod of the MultimodalRouter.
struct Pod {
  std::string name;
  std::string uid;
  // Empty: it has no address yet.
  std::string ip;
  std::string component;
  std::string revision;
  // Of workers.
  std::string pool;
  // Other pools whose selectors find it.
  std::vector<std::string> also_in;
  // Its Ready condition.
  bool is_ready = false;
  // It has a deletionTimestamp.
  bool is_ending = false;
  // It has Succeeded or Failed, so it holds no resources.
  bool is_over = false;
  // Its readiness gate, once it was written.
  std::optional<bool> routable;
  // Of agents: the digest of the list that its kubelet has seen.
  std::string list;
  // Why it does not run, for example "ImagePullBackOff: …". Empty: no problem is known.
  std::string trouble;
  bool operator==(const Pod&) const = default;
};

// A Deployment of the MultimodalRouter.
struct Deployment {
  std::string name;
  std::string component;
  std::string revision;
  std::string pool;
  std::int64_t wanted = 0;
  std::int64_t pods = 0;
  std::int64_t updated = 0;
  std::int64_t ready = 0;
  // Its controller has seen its latest spec.
  bool is_observed = false;
  // Why it makes no progress, from its controller.
  std::string trouble;
  bool operator==(const Deployment&) const = default;
};

// One worker, as one router reports it.
struct WorkerReport {
  // See GET /v1/workers.
  std::string state;
  bool is_ready = false;
  std::string reason;
  // From its events. 0: unknown.
  std::int64_t block_size = 0;
  // From its metrics or flags.
  std::int64_t block_size_configured = 0;
  bool operator==(const WorkerReport&) const = default;
};

// A process that announced itself to a router and does not match it.
struct Mismatch {
  std::string name;
  // The field: "model_digest", "block_size".
  std::string difference;
  std::string reason;
  bool operator==(const Mismatch&) const = default;
};

// The answers of one router.
struct RouterReport {
  std::string pod;
  std::string revision;
  // Why it could not be asked. Empty: it answered.
  std::string problem;
  // Its pod is ready, so its verdicts about workers count.
  bool is_ready = false;
  std::map<std::string, WorkerReport> workers;
  // The generation of the pushed list.
  std::optional<std::int64_t> generation;
  // The workers of that list. Null: no list was pushed.
  object::Value pushed;
  // The pushed settings, by name.
  std::map<std::string, std::string> settings;
  std::vector<Mismatch> misfits;
  // Empty: it is connected.
  std::string nats_trouble;
  bool operator==(const RouterReport&) const = default;
};

// A revision that has objects, with the spec that they were rendered from.
struct Stack {
  std::string revision;
  crd::Spec spec;
};

// Everything that verdicts depend on.
struct ClusterState {
  std::string name_space;
  std::string name;
  std::string uid;
  std::int64_t generation = 0;
  // The accepted spec.
  crd::Spec spec;
  crd::Status status;
  // The revision of `spec`.
  std::string target;
  // Includes the target, even if it has no objects.
  std::vector<Stack> stacks;
  // All pods that belong to the object, also workers of selector pools. By name.
  std::vector<Pod> pods;
  std::vector<Deployment> deployments;
  std::vector<RouterReport> routers;
  // The replicas of pools that an autoscaler scales.
  std::map<std::string, std::int64_t> scales;
  // The managed NATS servers that are ready.
  std::optional<std::int64_t> nats_ready;
};

// The pod of that name, or null.
const Pod* pod_named(const ClusterState& cluster, std::string_view name);

}  // namespace sightline::judge
