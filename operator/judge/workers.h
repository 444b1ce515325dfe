// SPDX-License-Identifier: Apache-2.0
// Copyright The Sightline Authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/desired/agents.h"
#include "operator/desired/settings.h"
#include "operator/judge/world.h"
#include "operator/plan/plan.h"

// Who the workers are, and which of them routers have admitted. Pure.
namespace sightline::judge {

// The workers of a revision: its own pods, and those that somebody else runs, which belong to every
// revision that has their pool. By name; with the fields of --worker. One whose pod ends is told to
// be drained until it is gone.
std::vector<desired::WorkerFields> workers_of(const World& world, const Stack& stack);

// Why the list of a stack is short without saying that there are so few: a Deployment of workers
// that is not found, or that counts more pods than are found. Empty: all there are are found.
std::string unseen_workers(const World& world, const Stack& stack);
// Whether the list of a stack must not be told: it is empty, and that is not known to be so.
bool is_list_unknown(const World& world, const Stack& stack);

// Workers that more than one pool of the spec names: "w0 (gpu, other)". Each counts once, for the
// first of the pools.
std::vector<std::string> workers_named_twice(const World& world);

// Whether routers of a revision send a worker requests for what it holds.
enum class Admission : std::uint8_t {
  Admitted,  // more than half of the revision's routers say so
  Refused,   // more than half answer and too few say so
  Unknown,   // too few routers answer
};
Admission admission_of(const World& world, const Stack& stack, const std::string& worker);

// Whether it gets requests: admitted or, where that is unknown, as its gate was last. False for one
// whose pod ends.
bool is_routable(const World& world, const Stack& stack, const std::string& worker);

// The pool of a worker of a stack, whoever runs it; null: it is no worker of the stack.
const crd::Pool* pool_of_worker(const World& world, const Stack& stack, const std::string& worker);

// Workers that somebody else runs, of a stack, undrained: by their admission there.
std::map<Admission, std::int64_t> lent_to(const World& world, const Stack& stack);

// Workers of pools with a template by revision and pool, and those that are lent, for the planner.
std::vector<plan::Revision> revisions_of(const World& world);

// What the gates of the world's own workers are to be, where that is not so yet. By pod.
std::map<std::string, bool> gates_to_set(const World& world);

// Pods of selectors, of all pools.
std::vector<desired::ForeignPod> foreign_pods(const World& world);

// The digest of an agent's list for each of its pods that was not shown it yet.
std::map<std::string, std::string> lists_to_show(const World& world);

}  // namespace sightline::judge
