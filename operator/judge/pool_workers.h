// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/desired/foreign_agents.h"
#include "operator/desired/program_settings.h"
#include "operator/judge/cluster_state.h"
#include "operator/plan/plan.h"

// The workers of a MultimodalRouter, and which of them routers have admitted. Pure.
namespace sightline::judge {

// The workers of a revision, by name, with the fields of --worker: its own pods, and workers of
// others, which belong to each revision that has their pool. A worker whose pod terminates gets
// drain=true until it is gone.
std::vector<desired::WorkerFields> workers_of(const ClusterState& cluster, const Stack& stack);

// Why the list of a stack is too short: a Deployment of workers is not found, or has more pods than
// are found. Empty: all existing workers are found.
std::string unseen_workers(const ClusterState& cluster, const Stack& stack);
// Whether the list of a stack must not be pushed: it is empty, but workers may exist.
bool is_list_unknown(const ClusterState& cluster, const Stack& stack);

// Workers that more than one pool of the spec names, for example "w0 (gpu, other)". Each counts
// only in the first of its pools.
std::vector<std::string> workers_named_twice(const ClusterState& cluster);

// Whether the routers of a revision choose a worker by its blocks.
enum class Admission : std::uint8_t {
  // More than half of the revision's routers report it so.
  Admitted,
  // More than half of the routers answer, and too few admit it.
  Refused,
  // Too few routers answer.
  Unknown,
};
// The admission of a worker by the routers of a stack.
Admission admission_of(const ClusterState& cluster, const Stack& stack, const std::string& worker);

// Whether the worker gets requests: it is admitted, or its admission is unknown and its readiness
// gate was true. False if its pod terminates.
bool is_routable(const ClusterState& cluster, const Stack& stack, const std::string& worker);

// The pool of a stack's worker, its own or lent. Null: the stack does not have it.
const crd::Pool* pool_of_worker(const ClusterState& cluster, const Stack& stack,
                                const std::string& worker);

// The number of a stack's lent workers that are not drained, by their admission there.
std::map<Admission, std::int64_t> lent_to(const ClusterState& cluster, const Stack& stack);

// Workers of pools with a template, by revision and pool, and lent workers: the input of the
// planner.
std::vector<plan::Revision> revisions_of(const ClusterState& cluster);

// The readiness gates of the cluster state's own workers that must change, by pod.
std::map<std::string, bool> gates_to_set(const ClusterState& cluster);

// The pods of selectors, of all pools.
std::vector<desired::ForeignPod> foreign_pods(const ClusterState& cluster);

// The digest of an agent's list, for each of its pods that does not show it yet.
std::map<std::string, std::string> lists_to_show(const ClusterState& cluster);

}  // namespace sightline::judge
