// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <string>
#include <vector>

#include "operator/desired/program_settings.h"
#include "operator/desired/render_input.h"
#include "operator/kube/object/value.h"

// Agents for workers of others: pods that a pool selects, and endpoints. The operator writes
// nothing to those pods.
namespace sightline::desired {

// A pod that a pool selects.
struct ForeignPod {
  std::string pool;
  std::string name;
  // Empty: it has no address yet.
  std::string ip;
};

// Whether the spec has pools of these workers.
bool has_foreign_workers(const crd::Spec& spec);

// These workers as an agent's list has them, sorted by name. They have the same names as in
// routers' lists: of the pod, or of the endpoint.
std::vector<WorkerFields> foreign_workers(const crd::Spec& spec,
                                          const std::vector<ForeignPod>& pods);

// A digest of this list in the agent's form.
std::string digest_of_list(const crd::Spec& spec, const std::vector<ForeignPod>& pods);

// The ConfigMap NAME-REVISION-agents with the list, which the agent watches, and the Deployment of
// the one agent that reads all these workers. workers_file() limits the list. The agent ends before
// its successor starts, because routers reject both of two agents for one worker. Empty if the spec
// has no pool of these workers.
std::vector<object::Value> agent_objects(const RenderInput& input,
                                         const std::vector<ForeignPod>& pods);

}  // namespace sightline::desired
