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

// What is known of one MultimodalRouter at one moment: what the API server has and what its routers
// say. Values only; judged by the other headers of this folder.
namespace sightline::judge {

struct Pod {
  std::string name;
  std::string uid;
  std::string ip;  // empty: none yet
  std::string component;
  std::string revision;
  std::string pool;                  // of workers
  std::vector<std::string> also_in;  // other pools whose selectors find it
  bool is_ready = false;             // as its Ready condition says
  bool is_ending = false;            // it has a deletionTimestamp
  bool is_over = false;              // Succeeded or Failed: it holds nothing any more
  std::optional<bool> routable;      // its readiness gate, once it was written
  std::string list;                  // of agents: the digest that its kubelet was shown
  std::string trouble;  // why it does not run: "ImagePullBackOff: …"; empty: nothing known
  bool operator==(const Pod&) const = default;
};

struct Deployment {
  std::string name;
  std::string component;
  std::string revision;
  std::string pool;
  std::int64_t wanted = 0;
  std::int64_t pods = 0;
  std::int64_t updated = 0;
  std::int64_t ready = 0;
  bool is_observed = false;  // its controller has seen its latest spec
  std::string trouble;       // why it makes no progress, as its controller says
  bool operator==(const Deployment&) const = default;
};

// One worker, as one router knows it.
struct WorkerReport {
  std::string state;  // as of GET /v1/workers
  bool is_ready = false;
  std::string reason;
  std::int64_t block_size = 0;             // that its events tell; 0: unknown
  std::int64_t block_size_configured = 0;  // that its metrics or flags tell
  bool operator==(const WorkerReport&) const = default;
};

// Another process that announced itself to a router and is not of its kind.
struct Misfit {
  std::string name;
  std::string difference;  // the field: "model_digest", "block_size"
  std::string reason;
  bool operator==(const Misfit&) const = default;
};

// One router, as it answers.
struct RouterReport {
  std::string pod;
  std::string revision;
  std::string problem;    // why it could not be asked; empty: it answered
  bool is_ready = false;  // its pod is: what it says of workers counts
  std::map<std::string, WorkerReport> workers;
  std::optional<std::int64_t> generation;       // of the list that was pushed
  object::Value pushed;                         // that list's workers; null: none was
  std::map<std::string, std::string> settings;  // that were pushed, by name
  std::vector<Misfit> misfits;
  std::string nats_trouble;  // empty: it is connected
  bool operator==(const RouterReport&) const = default;
};

// A revision that has objects: what it was rendered from.
struct Stack {
  std::string revision;
  crd::Spec spec;
};

struct World {
  std::string name_space;
  std::string name;
  std::string uid;
  std::int64_t generation = 0;
  crd::Spec spec;  // accepted
  crd::Status status;
  std::string target;         // revision of `spec`
  std::vector<Stack> stacks;  // the target among them, whether or not it has objects
  std::vector<Pod> pods;      // all that are its own, workers of selector pools too; by name
  std::vector<Deployment> deployments;
  std::vector<RouterReport> routers;
  std::map<std::string, std::int64_t> scales;  // replicas of pools that somebody else scales
  std::optional<std::int64_t> nats_ready;      // managed servers that are ready
};

// Null: there is none of that name.
const Pod* pod_named(const World& world, std::string_view name);

}  // namespace sightline::judge
