// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "operator/desired/scene.h"
#include "operator/desired/settings.h"
#include "operator/kube/object/value.h"

// Agents of workers that somebody else runs: pods that a pool selects, and endpoints. Nothing is
// written to those pods.
namespace sightline::desired {

// A pod that a pool selects.
struct ForeignPod {
  std::string pool;
  std::string name;
  std::string ip;  // empty: none yet
};

bool has_foreign_workers(const crd::Spec& spec);

// Those workers as an agent is told of them, sorted by name. Their names are those that routers'
// lists have: of the pod, of the endpoint.
std::vector<WorkerFields> foreign_workers(const crd::Spec& spec,
                                          const std::vector<ForeignPod>& pods);

// Of that list, as the agent reads it.
std::string digest_of_list(const crd::Spec& spec, const std::vector<ForeignPod>& pods);

// The ConfigMap NAME-REVISION-agents with the list (workers_file() says how long it may be), which
// the agent watches, and the Deployment of the one agent that reads them all; it ends before
// another one starts, since of two that tell of one worker neither is believed. Empty if the spec
// has no such pool.
std::vector<object::Value> agent_objects(const Scene& scene, const std::vector<ForeignPod>& pods);

}  // namespace sightline::desired
